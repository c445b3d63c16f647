"""``ai`` of DFTracer 2.x: objects for what a training does, each a context manager, a decorator and an iterator."""

import enum

from stepscope import _recorder
from stepscope.compat.dftracer._events import DFTracer, Traced, given, turns

ITER_COUNT_NAME = "count"
INIT_NAME = "init"


class _Text(str, enum.Enum):
    """Names that are texts."""

    def __str__(self):
        return self.value


def _texts(name, members):
    return _Text(name, {member.upper(): member for member in members.split()})


ProfileCategory = _texts("ProfileCategory", "compute data dataloader comm device checkpoint pipeline other")
ComputeEvent = _texts("ComputeEvent", "forward backward step")
DataEvent = _texts("DataEvent", "preprocess item")
DataLoaderEvent = _texts("DataLoaderEvent", "fetch")
CommunicationEvent = _texts(
    "CommunicationEvent",
    "send receive barrier bcast reduce all_reduce gather all_gather scatter reduce_scatter all_to_all",
)
DeviceEvent = _texts("DeviceEvent", "transfer")
PipelineEvent = _texts("PipelineEvent", "epoch train evaluate test")
CheckpointEvent = _texts("CheckpointEvent", "capture restart")
IOEvent = _texts("IOEvent", "open read write close")


def get_iter_block_name(name):
    """The name of the turns of a loop."""
    return name if name.endswith(".block") else f"{name}.block"


def get_iter_handle_name(name):
    """The name of the waits of a loop."""
    return name if name.endswith(".iter") else f"{name}.iter"


class DFTracerAI(Traced):
    """One of the objects below ``ai``."""

    def __init__(
        self, *, cat, name=None, epoch=None, step=None, image_idx=None, image_size=None, enable=True, args=None
    ):
        super().__init__(str(cat), str(name or cat), given(epoch, step, image_idx, image_size, args), enable)
        self._children = {}

    @property
    def cat(self):
        return self._cat

    @property
    def name(self):
        return self._name

    def __call__(self, fn=None, *, enable=None, epoch=None, step=None, image_idx=None, image_size=None, args=None):
        """The same with these arguments, which are of it alone; or a decorated function."""
        traced = self._with(self._name, given(epoch, step, image_idx, image_size, args), enable)
        if fn is None:
            return traced
        # What it says with `update` may be said of the object that decorates.
        traced = traced if enable is not None or traced._arguments != self._arguments else self
        return traced._decorate(fn, self._name, lambda args, kwargs: {})

    def _with(self, name, arguments, enable=None):
        traced = DFTracerAI(cat=self._cat, name=name, enable=self._enable if enable is None else enable)
        traced._arguments = {**self._arguments, **arguments}
        return traced

    def get_time(self):
        """The time of day in microseconds."""
        return DFTracer.get_instance().get_time()

    def start(self, metadata=False):
        """It begins; with ``metadata`` only the time is kept, as metadata of the process."""
        if metadata:
            _recorder.set_fact(f"dftracer.{self._name}.start", str(self.get_time()))
        else:
            self.__enter__()

    def stop(self, metadata=False):
        """It ends."""
        if metadata:
            _recorder.set_fact(f"dftracer.{self._name}.end", str(self.get_time()))
        else:
            self.__exit__(None, None, None)

    def reset(self):
        """It begins anew."""
        self._end()
        self.__enter__()

    def enable(self):
        """It, and what is below it, is recorded."""
        self._enable = True
        for child in self._children.values():
            child.enable()

    def disable(self):
        """It, and what is below it, is not recorded."""
        self._enable = False
        for child in self._children.values():
            child.disable()

    def update(self, epoch=None, step=None, image_idx=None, image_size=None, args=None):
        """Arguments of what is open here, else of what follows; of what is below it, too."""
        arguments = given(epoch, step, image_idx, image_size, args)
        self._add(arguments)
        for child in self._children.values():
            child.update(args=arguments)
        return self

    def iter(self, iterator, *, include_block=True, include_iter=True, iter_name=None, block_name=None):
        """The values of an iterable: each wait for one is an event, and each turn of the loop."""
        wait = iter_name or get_iter_handle_name(self._name)
        turn = block_name or get_iter_block_name(self._name)
        return turns(self, iterator, wait, turn, ITER_COUNT_NAME, include_iter, include_block)

    def create_children(self, names):
        """Objects below it, by attribute, with their names."""
        for attribute, name in names.items():
            self._children[attribute] = self._with(str(name), {})
            setattr(self, attribute, self._children[attribute])

    def derive(self, name):
        """An object below it with a name behind its own."""
        name = f"{self._name}.{name}"
        if name not in self._children:
            self._children[name] = self._with(name, {})
        return self._children[name]

    def init(self, fn=None, *, enable=None, epoch=None, step=None, image_idx=None, image_size=None, args=None):
        """The same as calling it, for a constructor."""
        return self.derive(INIT_NAME)(
            fn, enable=enable, epoch=epoch, step=step, image_idx=image_idx, image_size=image_size, args=args
        )


def _branch(category, events, has_io=False):
    branch = DFTracerAI(cat=category)
    branch.create_children({event.value: event.value for event in events})
    if has_io:
        io = f"{category}.io"
        branch.create_children({"io": io})
        branch.io.create_children({event.value: f"{io}.{event.value}" for event in IOEvent})
    return branch


def _tree():
    root = DFTracerAI(cat="ai_root", name="ai_root")
    branches = {
        "compute": _branch("compute", ComputeEvent),
        "data": _branch("data", DataEvent, has_io=True),
        "dataloader": _branch("dataloader", DataLoaderEvent),
        "comm": _branch("comm", CommunicationEvent),
        "device": _branch("device", DeviceEvent),
        "checkpoint": _branch("checkpoint", CheckpointEvent, has_io=True),
        "pipeline": _branch("pipeline", PipelineEvent),
        "other": _branch("other", (), has_io=True),
    }
    branches["other"].create_children({"log": "other.log"})
    for attribute, branch in branches.items():
        root._children[attribute] = branch
        setattr(root, attribute, branch)
    return root


ai = _tree()
