"""``dynamo`` of DFTracer 2.x, which puts a call around each node of a compiled graph. Operators are recorded without: its
graphs run here as they are, operator by operator."""

from stepscope.compat.dftracer._ai import DFTracerAI


class Dynamo(DFTracerAI):
    """What compiles a function or a module so that its operators are seen."""

    def __init__(self, name=None, epoch=None, step=None, image_idx=None, image_size=None, enable=True):
        super().__init__(
            cat="dynamo",
            name=name,
            epoch=epoch,
            step=step,
            image_idx=image_idx,
            image_size=image_size,
            enable=enable,
        )

    def compile(self, f_py=None, autograd=True):
        """The function or module, compiled; a decorator without one. As it is where this is disabled."""

        def compiled(function):
            if not self._enable:
                return function
            import torch

            return torch.compile(function, backend=_backend(autograd))

        return compiled if f_py is None else compiled(f_py)

    def count_parameters(self, module):
        """How many numbers a module learns; ``None`` of what has none."""
        return sum(parameter.numel() for parameter in module.parameters()) if hasattr(module, "parameters") else None


def create_backend(name=None, epoch=None, step=None, image_idx=None, image_size=None, enable=True, autograd=True):
    """A backend for ``torch.compile``. What the other arguments say is of events, which there are none of."""
    from torch._dynamo import lookup_backend

    return lookup_backend(_backend(autograd))


def _backend(autograd):
    return "aot_eager" if autograd else "eager"


dynamo = Dynamo()
