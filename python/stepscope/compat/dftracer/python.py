"""The names of ``dftracer.python``, 2.x."""

import enum

from stepscope.compat.dftracer._ai import (
    INIT_NAME,
    ITER_COUNT_NAME,
    CheckpointEvent,
    CommunicationEvent,
    ComputeEvent,
    DataEvent,
    DataLoaderEvent,
    DeviceEvent,
    DFTracerAI,
    IOEvent,
    PipelineEvent,
    ProfileCategory,
    ai,
    get_iter_block_name,
    get_iter_handle_name,
)
from stepscope.compat.dftracer._compiled import Dynamo, create_backend, dynamo
from stepscope.compat.dftracer._events import DftFn as dft_fn
from stepscope.compat.dftracer._events import DFTracer as dftracer
from stepscope.compat.dftracer._events import TagDType, TagType, TagValue, get_default_args

__all__ = [
    "INIT_NAME",
    "ITER_COUNT_NAME",
    "CheckpointEvent",
    "CommunicationEvent",
    "ComputeEvent",
    "DFTracerAI",
    "DataEvent",
    "DataLoaderEvent",
    "DeviceEvent",
    "Dynamo",
    "EntityRelation",
    "EntityRole",
    "EntityStore",
    "IOEvent",
    "PipelineEvent",
    "ProfileCategory",
    "TagDType",
    "TagType",
    "TagValue",
    "ai",
    "checkpoint",
    "comm",
    "compute",
    "create_backend",
    "data",
    "dataloader",
    "device",
    "dft_fn",
    "dftracer",
    "dynamo",
    "get_default_args",
    "get_iter_block_name",
    "get_iter_handle_name",
    "get_time_scale",
    "pipeline",
]

EntityStore = enum.IntEnum(
    "EntityStore",
    "MEMORY GPU_MEMORY LOCAL_DISK PARALLEL_FS BURST_BUFFER OBJECT_STORE DATABASE NETWORK OTHER",
    start=0,
)
EntityRole = enum.IntEnum("EntityRole", "UNKNOWN INPUT OUTPUT INTERMEDIATE PARAMETER REFERENCE", start=0)
EntityRelation = enum.IntEnum(
    "EntityRelation",
    {
        "USED": 0,
        "GENERATED": 1,
        "INVALIDATED": 2,
        "UPDATED": 3,
        "DERIVED_FROM": 16,
        "REVISION_OF": 17,
        "CONTAINS": 18,
        "PART_OF": 19,
        "SPECIALIZATION_OF": 20,
        "ALTERNATE_OF": 21,
        "DEPENDS_ON": 22,
    },
)

checkpoint, comm, compute, data = ai.checkpoint, ai.comm, ai.compute, ai.data
dataloader, device, pipeline = ai.dataloader, ai.device, ai.pipeline


def get_time_scale():
    """Units of ``dftracer.get_time()`` in a second."""
    return 1e6
