/**
 * The Python file of an export: an op of `torch.library` over the exported library, with a fake implementation that knows its shapes, so that
 * `torch.compile` sees no break, and launches on the current stream, so that a CUDA graph can hold it.
 */
import type { DType } from '../ir/dtype.js'
import { dtypes } from '../ir/dtype.js'
import type { CNames } from './header.js'
import type { Lowered, LoweredValue } from './lowered.js'
import { pythonText, quoted } from './text.js'

const torchTypes: Readonly<Record<DType, string>> = {
  f32: 'torch.float32',
  f16: 'torch.float16',
  bf16: 'torch.bfloat16',
  i32: 'torch.int32',
  i8: 'torch.int8',
  u8: 'torch.uint8',
}

/** Where an open dimension is read: an axis of an input; undefined where a caller has to say it. */
interface Axis {
  readonly dim: string
  readonly input: string
  readonly axis: number
}

export function torchText(lowered: Lowered, names: CNames): string {
  const { program, inputs: args, outputs: results, dims } = names
  const axes = dims.flatMap((_, at): Axis[] => {
    const dim = lowered.dims[at] ?? ''
    const found = lowered.inputs.flatMap(({ shape }, i) => {
      const axis = shape.findIndex((extent) => extent.factor === 1 && extent.dims.length === 1 && extent.dims[0] === dim)
      return axis < 0 ? [] : [{ dim, input: args[i] ?? '', axis }]
    })
    return found.slice(0, 1)
  })
  const said = lowered.dims.filter((dim) => !axes.some((axis) => axis.dim === dim))
  const defaulted = (dim: string): boolean => lowered.most[dim] !== undefined
  const numbers = [...said.filter((dim) => !defaulted(dim)), ...said.filter(defaulted)]
  const stateful = lowered.states.length > 0
  const shape = (value: LoweredValue): string => `(${value.shape.map((extent) => `${pythonText(extent)}, `).join('')})`
  const tensors = [...args, ...(stateful ? ['states'] : [])]
  const parameters = [
    ...tensors.map((name) => `${name}: torch.Tensor`),
    'program: int',
    ...numbers.map((dim) => `${dim}: int${defaulted(dim) ? ' = -1' : ''}`),
  ]
  const home = args[0] ?? 'states'
  const bare = args.length === 0 && !stateful
  const returned = results.length === 0 ? 'None' : results.length === 1 ? 'torch.Tensor' : `Tuple[${results.map(() => 'torch.Tensor').join(', ')}]`
  const sizes = [
    ...axes.map(({ dim, input, axis }) => `    ${dim} = ${input}.shape[${axis}]`),
    ...numbers.filter(defaulted).map((dim) => `    ${dim} = ${pythonText(lowered.most[dim] ?? { factor: 0, dims: [] })} if ${dim} < 0 else ${dim}`),
  ].join('\n')
  const made = lowered.outputs.map(
    (value, i) => `    ${results[i]} = torch.empty(${shape(value)}, dtype=${torchTypes[value.dtype]}, device=${bare ? 'DEVICE' : `${home}.device`})`,
  )
  const back = results.length === 0 ? '    return None' : `    return ${results.join(', ')}`
  const checks = lowered.inputs.map(
    (value, i) => `    _expect(${quoted(args[i] ?? '')}, ${args[i]}, ${torchTypes[value.dtype]}, ${shape(value)})`,
  )
  const call = ['program', ...numbers]
  return `"""${lowered.name} under plan ${lowered.plan} in ${lowered.dtype} as an op of PyTorch. Made by \`heddle export\`.

    import torch, ${program}_torch
    model = ${program}_torch.Program(weights)          # tensors by name, on the library's device
    result = model(${[...args, ...(stateful ? ['states'] : []), ...numbers.filter((dim) => !defaulted(dim))].join(', ')})

The library is build/lib${program}.so beside this file, or what HEDDLE_LIBRARY names. The op is torch.ops.heddle.${program}.
"""
import ctypes
import os
from typing import Tuple

import torch

_library = ctypes.CDLL(os.environ.get("HEDDLE_LIBRARY", os.path.join(os.path.dirname(os.path.abspath(__file__)), "build", "lib${program}.so")))


class _Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int32), ("message", ctypes.c_char * 1024)]


class _Weight(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_uint32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
    ]


class HeddleError(RuntimeError):
    """What the library refused; \`status\` is one of heddle_status or heddle_export_status."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


def _function(name: str, *arguments):
    function = getattr(_library, "${program}_" + name)
    function.argtypes = [*arguments, ctypes.POINTER(_Error)]
    function.restype = ctypes.c_int32

    def call(*values) -> None:
        error = _Error()
        status = function(*values, ctypes.byref(error))
        if status != 0:
            raise HeddleError(status, error.message.decode(errors="replace"))

    return call


_pointer, _u32, _u64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
_create = _function("create", _pointer, _u32, ctypes.POINTER(_pointer))
_workspace_bytes = _function("workspace_bytes", _pointer, _pointer, ctypes.POINTER(_u64))
_states_bytes = _function("states_bytes", _pointer, _pointer, ctypes.POINTER(_u64))
_reset = _function("reset", _pointer, _pointer, _pointer, _pointer)
_write = _function("write", _pointer, _pointer, _pointer, _u32, _pointer, _u64, _pointer)
_read = _function("read", _pointer, _pointer, _pointer, _u32, _pointer, _u64, _pointer)
_run = _function("run", _pointer, _pointer, _pointer, _pointer, _pointer, _pointer, _u64, _pointer)
_library.${program}_destroy.argtypes = [_pointer]
_library.${program}_destroy.restype = None
_library.${program}_target.restype = ctypes.c_char_p

# "cuda", or "cpu" where the library was built for simt.
DEVICE = "cuda" if _library.${program}_target() == b"cuda" else "cpu"

_dtypes = [${dtypes.map((type) => torchTypes[type]).join(', ')}]
# Names of the states, by number.
STATES = [${lowered.states.map(({ name }) => quoted(name)).join(', ')}]


def _stream(device: torch.device) -> int:
    return torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0


def _numbers(values):
    return (ctypes.c_int64 * max(1, len(values)))(*values)


def _pointers(tensors):
    return (ctypes.c_void_p * max(1, len(tensors)))(*[tensor.data_ptr() for tensor in tensors])


def _bytes(of, program: int, sizes) -> int:
    found = _u64()
    of(program, sizes, ctypes.byref(found))
    return found.value


def _expect(name: str, tensor: torch.Tensor, dtype: torch.dtype, shape) -> None:
    if tensor.dtype != dtype or tuple(tensor.shape) != tuple(shape):
        raise ValueError(f"{name} is {tensor.dtype} {list(tensor.shape)}, expected is {dtype} {list(shape)}")
    if tensor.device.type != DEVICE or not tensor.is_contiguous():
        raise ValueError(f"{name} has to be contiguous, on {DEVICE}; it is on {tensor.device}")


# Workspaces hold nothing between runs: what a caller's stream uses is that stream's, by PyTorch's own allocator.
@torch.library.custom_op("heddle::${program}", mutates_args=(${stateful ? '"states",' : ''}))
def ${program}(${parameters.join(', ')}) -> ${returned}:
${[sizes, ...checks, ...made].filter((line) => line !== '').join('\n')}
    sizes = _numbers([${lowered.dims.join(', ')}])
    workspace = torch.empty(_bytes(_workspace_bytes, program, sizes), dtype=torch.uint8, device=${bare ? 'DEVICE' : `${home}.device`})
    _run(program, sizes, _pointers([${args.join(', ')}]), _pointers([${results.join(', ')}]), ${stateful ? 'states.data_ptr()' : 'None'}, workspace.data_ptr(), workspace.numel(), _stream(workspace.device))
${back}


@${program}.register_fake
def _(${parameters.join(', ')}):
${[sizes, ...made].filter((line) => line !== '').join('\n')}
${back}


class Program:
    """The program with its weights: tensors by name, contiguous, on the library's device. It holds them."""

    def __init__(self, weights):
        self._weights = {name: tensor.contiguous() for name, tensor in weights.items()}
        shapes = [_numbers(list(tensor.shape)) for tensor in self._weights.values()]
        given = (_Weight * max(1, len(shapes)))(
            *[
                _Weight(name.encode(), tensor.data_ptr(), _dtypes.index(tensor.dtype), tensor.dim(), shape)
                for (name, tensor), shape in zip(self._weights.items(), shapes)
            ]
        )
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        handle = _pointer()
        _create(given, len(shapes), ctypes.byref(handle))
        self.handle = handle.value

    def __del__(self):
        if getattr(self, "handle", None) is not None:
            _library.${program}_destroy(self.handle)
            self.handle = None

    def __call__(self, ${[...tensors, ...numbers.map((dim) => (defaulted(dim) ? `${dim}=-1` : dim))].join(', ')}):
        return torch.ops.heddle.${program}(${[...tensors, 'self.handle', ...numbers].join(', ')})
${stateful ? stateText(lowered.dims) : ''}`.replace('(self, )', '(self)').replaceAll(`(${call.join(', ')}, )`, `(${call.join(', ')})`)
}

const stateText = (dims: readonly string[]): string => `
    def states(self${dims.map((dim) => `, ${dim}`).join('')}) -> torch.Tensor:
        """Memory for the states at these sizes, as they are before the first run."""
        sizes = _numbers([${dims.join(', ')}])
        made = torch.empty(_bytes(_states_bytes, self.handle, sizes), dtype=torch.uint8, device=DEVICE)
        _reset(self.handle, sizes, made.data_ptr(), _stream(made.device))
        return made

    def write(self, states: torch.Tensor, name: str, value: torch.Tensor, ${dims.join(', ')}) -> None:
        """Sets a state to the elements of a tensor, as they lie in the state's layout."""
        value = value.contiguous()
        data, size = value.data_ptr(), value.numel() * value.element_size()
        _write(self.handle, _numbers([${dims.join(', ')}]), states.data_ptr(), STATES.index(name), data, size, _stream(states.device))

    def read(self, states: torch.Tensor, name: str, like: torch.Tensor, ${dims.join(', ')}) -> torch.Tensor:
        """The elements of a state, in a new tensor of the type and shape of \`like\`."""
        found = torch.empty_like(like, device=states.device, memory_format=torch.contiguous_format)
        data, size = found.data_ptr(), found.numel() * found.element_size()
        _read(self.handle, _numbers([${dims.join(', ')}]), states.data_ptr(), STATES.index(name), data, size, _stream(states.device))
        return found
`
