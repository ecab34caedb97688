"""The part of PyTorch that an exported file uses, over memory of ctypes: enough to run its op on the CPU device without PyTorch."""
import ctypes
import math
import types


class dtype:
    def __init__(self, itemsize, code=""):
        self.itemsize, self.code = itemsize, code


float32, int32, int64, uint8 = dtype(4, "f"), dtype(4, "i"), dtype(8, "q"), dtype(1, "B")
float16, bfloat16, int16, uint32 = dtype(2), dtype(2), dtype(2), dtype(4)
int8, float8_e4m3fn, float8_e5m2, bool = dtype(1), dtype(1), dtype(1), dtype(1)
contiguous_format = None
device = types.SimpleNamespace


class Tensor:
    """Contiguous elements in memory that several tensors may share."""

    def __init__(self, memory, begin, kind, shape):
        self._memory, self._begin, self.dtype, self.shape = memory, begin, kind, tuple(shape)
        self.device = types.SimpleNamespace(type="cpu")

    def numel(self):
        return math.prod(self.shape)

    def dim(self):
        return len(self.shape)

    def element_size(self):
        return self.dtype.itemsize

    def data_ptr(self):
        return address(self._memory) + self._begin

    def contiguous(self):
        return self

    def to(self, device):
        return self

    def tolist(self):
        return nested(list(self.elements()), self.shape)

    def __getitem__(self, part):
        return Tensor(self._memory, self._begin + part.start * self.dtype.itemsize, self.dtype, (part.stop - part.start,))

    def view(self, to):
        if isinstance(to, dtype):
            return Tensor(self._memory, self._begin, to, (self.numel() * self.dtype.itemsize // to.itemsize,))
        return Tensor(self._memory, self._begin, self.dtype, to)

    def elements(self):
        return memoryview(self._memory)[self._begin : self._begin + self.numel() * self.dtype.itemsize].cast(self.dtype.code)


def nested(values, shape):
    if len(shape) < 2:
        return values
    size = len(values) // shape[0] if shape[0] > 0 else 0
    return [nested(values[i * size : (i + 1) * size], shape[1:]) for i in range(shape[0])]


def address(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def empty(shape, dtype, device):
    shape = (shape,) if isinstance(shape, int) else shape
    memory = bytearray(math.prod(shape) * dtype.itemsize + 64)
    return Tensor(memory, -address(memory) % 64, dtype, shape)


def empty_like(like, device=None, memory_format=None):
    return empty(like.shape, like.dtype, device)


class Library:
    def __init__(self, name, kind):
        pass

    def define(self, schema):
        schemas.append(schema)

    def impl(self, name, function, key):
        setattr(ops.heddle, name, function)


def register_fake(name, lib):
    return lambda function: fakes.setdefault(name, function)


schemas, fakes = [], {}
ops = types.SimpleNamespace(heddle=types.SimpleNamespace())
library = types.SimpleNamespace(
    Library=Library, register_fake=register_fake, infer_schema=lambda function, mutates_args: f" mutates {', '.join(mutates_args)}"
)
