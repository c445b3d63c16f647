"""Makes each call on files once, some of them thousands of times."""

import mmap
import os
import subprocess
import sys
import threading

folder = sys.argv[1]
path = os.path.join(folder, "data.bin")


def read_all():
    fd = os.open(path, os.O_RDONLY)
    while os.read(fd, 700):
        pass
    os.close(fd)


with open(path, "wb") as file:
    file.write(b"x" * 100_000)
fd = os.open(path, os.O_RDWR)
for at in range(100):
    os.pread(fd, 512, at * 512)
os.lseek(fd, 5_000, os.SEEK_SET)
os.read(fd, 1_000)
copy = os.dup(fd)
os.read(copy, 1_000)
os.read(fd, 1_000)
os.preadv(fd, [bytearray(10), bytearray(20)], 99_990)
os.pwrite(fd, b"abc", 7)
os.ftruncate(fd, 90_000)
os.fsync(fd)
with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as mapped:
    mapped[80_000]
os.close(copy)
os.close(fd)
try:
    os.open(os.path.join(folder, "missing"), os.O_RDONLY)
except FileNotFoundError:
    pass
# Relative to a folder, and to the current one.
os.chdir(folder)
at = os.open(".", os.O_RDONLY)
fd = os.open("data.bin", os.O_RDONLY, dir_fd=at)
out = os.open("copy.bin", os.O_WRONLY | os.O_CREAT, dir_fd=at)
os.sendfile(out, fd, 0, 50_000)
os.copy_file_range(fd, out, 10_000)
for each in (out, fd, at):
    os.close(each)
os.stat("data.bin")
os.rename("copy.bin", "moved.bin")
os.listdir(".")
os.unlink("moved.bin")
# More descriptors than a page of a table.
many = [os.open(path, os.O_RDONLY) for _ in range(3_000)]
for each in many:
    os.read(each, 10)
for each in many:
    os.close(each)
threads = [threading.Thread(target=read_all) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
# A forked child, one that begins another program, and one that a shell begins.
pid = os.fork()
if pid == 0:
    read_all()
    os._exit(0)
os.waitpid(pid, 0)
subprocess.run(["cp", path, "other.bin"], check=True)
subprocess.run("cat < data.bin > third.bin", shell=True, check=True)
read_all()
