"""One epoch over a folder of JPEGs, decoded and cropped by workers, as image models are trained: prints its seconds."""

import json
import sys
import time

import torch
from torchvision import datasets, transforms

if __name__ == "__main__":
    folder, workers = sys.argv[1], int(sys.argv[2])
    crop = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])
    images = datasets.ImageFolder(folder, crop)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 7, stride=4), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    model.append(torch.nn.Linear(8, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    begin = time.perf_counter()
    for batch, labels in torch.utils.data.DataLoader(images, batch_size=32, num_workers=workers):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(batch), labels).backward()
        optimizer.step()
    print(json.dumps({"seconds": time.perf_counter() - begin}))
