/**
 * The Python file of an export: an op of `torch.library` over the exported library, with a fake implementation that knows its shapes, so that
 * `torch.compile` sees no break, and launches on the current stream, so that a CUDA graph can hold it.
 */
import { abiType, type DType, dtypes } from '../ir/dtype.js'
import type { CNames } from './header.js'
import type { Lowered, LoweredValue } from './lowered.js'
import type { Size } from './sizes.js'
import { inPython, plainText, quoted } from './text.js'

const torchTypes: Readonly<Record<DType, string>> = {
  f32: 'torch.float32',
  f16: 'torch.float16',
  bf16: 'torch.bfloat16',
  i32: 'torch.int32',
  i8: 'torch.int8',
  u8: 'torch.uint8',
  f8e4m3: 'torch.float8_e4m3fn',
  f8e5m2: 'torch.float8_e5m2',
  i16: 'torch.int16',
  u32: 'torch.uint32',
  i64: 'torch.int64',
  bool: 'torch.bool',
}

/** Where an open dimension is read: an axis of an input. */
interface Axis {
  readonly dim: string
  readonly input: string
  readonly axis: number
}

export function torchText(lowered: Lowered, names: CNames): string {
  const { program } = names
  const own = new Set([
    'program',
    'self',
    'states',
    'sizes',
    'workspace',
    'torch',
    'name',
    'value',
    'like',
    'inputs',
    'outputs',
    program,
  ])
  const args = names.inputs.map((name) => (own.has(name) ? `in_${name}` : name))
  // Inside, dimensions and outputs have names that no tensor has.
  const results = names.outputs.map((name) => `out_${name}`)
  const inside = (dim: string): string => `d_${dim}`
  const outside = (dim: string): string => (args.includes(dim) || own.has(dim) ? `size_${dim}` : dim)
  const text = (size: Size): string => plainText(size, inside, inPython)
  const { axes, said, defaulted } = sourcesOf(lowered, args)
  const stateful = lowered.states.length > 0
  const listed = (items: readonly string[]): string => (items.length === 1 ? `${items[0]},` : items.join(', '))
  const shape = (value: LoweredValue): string =>
    `(${listed((value.padded === undefined ? value.shape : [value.padded]).map(text))})`
  const tensors = [...args, ...(stateful ? ['states'] : [])]
  const parameters = [
    ...tensors.map((name) => `${name}: torch.Tensor`),
    'program: int',
    ...said.map((dim) => `${outside(dim)}: int${defaulted(dim) ? ' = -1' : ''}`),
  ].join(', ')
  const device = tensors[0] === undefined ? 'DEVICE' : `${tensors[0]}.device`
  const types = results.map(() => 'torch.Tensor').join(', ')
  const returned = results.length === 0 ? 'None' : results.length === 1 ? types : `Tuple[${types}]`
  const most = (dim: string): string => text(lowered.most[dim] ?? { factor: 0, dims: [] })
  const sizes = [
    ...axes.map(({ dim, input, axis }) => `    ${inside(dim)} = ${input}.shape[${axis}]`),
    ...said.map(
      (dim) =>
        `    ${inside(dim)} = ${defaulted(dim) ? `${most(dim)} if ${outside(dim)} < 0 else ${outside(dim)}` : outside(dim)}`,
    ),
  ]
  const made = lowered.outputs.map(
    (value, i) => `    ${results[i]} = torch.empty(${shape(value)}, dtype=${torchTypes[value.dtype]}, device=${device})`,
  )
  const back = `    return ${results.length === 0 ? 'None' : results.join(', ')}`
  const checks = lowered.inputs.map(
    (value, i) => `    ${args[i]} = _expect(${quoted(args[i] ?? '')}, ${args[i]}, ${torchTypes[value.dtype]}, ${shape(value)})`,
  )
  const body = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('')
  const states = stateful ? 'states.data_ptr(), states.numel()' : 'None, 0'
  const given = [...tensors, ...said.filter((dim) => !defaulted(dim)).map(outside)].join(', ')
  return `"""${lowered.name} under plan ${lowered.plan} in ${lowered.dtype} as an op of PyTorch. Made by \`heddle export\`.

    import torch, ${program}_torch
    model = ${program}_torch.Program(weights)          # tensors by name, on the library's device
    result = model(${given})

The library is build/lib${program}.so beside this file, or what HEDDLE_LIBRARY_${program.toUpperCase()} names. The op is torch.ops.heddle.${program}.
"""
import ctypes
import os
from typing import Tuple

import torch

_library = ctypes.CDLL(os.environ.get("HEDDLE_LIBRARY_${program.toUpperCase()}", os.path.join(os.path.dirname(os.path.abspath(__file__)), "build", "lib${program}.so")))


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
_reset = _function("reset", _pointer, _pointer, _pointer, _u64, _pointer)
_write = _function("write", _pointer, _pointer, _pointer, _u64, _u32, _pointer, _u64, _pointer)
_read = _function("read", _pointer, _pointer, _pointer, _u64, _u32, _pointer, _u64, _pointer)
_run = _function("run", _pointer, _pointer, _pointer, _pointer, _pointer, _u64, _pointer, _u64, _pointer)
_library.${program}_destroy.argtypes = [_pointer]
_library.${program}_destroy.restype = None
_library.${program}_target.restype = ctypes.c_char_p

# "cuda", or "cpu" where the library was built for simt.
DEVICE = "cuda" if _library.${program}_target() == b"cuda" else "cpu"

_dtypes = {${dtypes.map((type) => `${torchTypes[type]}: ${abiType(type)}`).join(', ')}}
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


def _expect(name: str, tensor: torch.Tensor, dtype: torch.dtype, shape) -> torch.Tensor:
    if tensor.dtype != dtype or tuple(tensor.shape) != tuple(shape):
        raise ValueError(f"{name} is {tensor.dtype} {list(tensor.shape)}, expected is {dtype} {list(shape)}")
    if tensor.device.type != DEVICE:
        raise ValueError(f"{name} has to be on {DEVICE}, it is on {tensor.device}")
    return tensor.contiguous()


# A workspace holds nothing between runs: what a caller's stream uses is that stream's, by PyTorch's own allocator.
def ${program}(${parameters}) -> ${returned}:
${body([...sizes, ...checks, ...made])}    sizes = _numbers([${lowered.dims.map(inside).join(', ')}])
    workspace = torch.empty(_bytes(_workspace_bytes, program, sizes), dtype=torch.uint8, device=${device})
    inputs, outputs = _pointers([${args.join(', ')}]), _pointers([${results.join(', ')}])
    _run(program, sizes, inputs, outputs, ${states}, workspace.data_ptr(), workspace.numel(), _stream(workspace.device))
${back}


# Defined as it is: what custom_op adds to each call in Python takes as long as the kernels of a small program.
_ops = torch.library.Library("heddle", "FRAGMENT")
_ops.define("${program}" + torch.library.infer_schema(${program}, mutates_args=(${stateful ? '"states",' : ''})))
_ops.impl("${program}", ${program}, "CompositeExplicitAutograd")


@torch.library.register_fake("heddle::${program}", lib=_ops)
def _(${parameters}):
${body([...sizes, ...made])}${back}


class Program:
    """The program with its weights: tensors by name, contiguous, on the library's device. It holds them."""

    def __init__(self, weights):
        self._weights = {name: tensor.contiguous() for name, tensor in weights.items()}
        shapes = [_numbers(list(tensor.shape)) for tensor in self._weights.values()]
        given = (_Weight * max(1, len(shapes)))(
            *[
                _Weight(name.encode(), tensor.data_ptr(), _dtypes[tensor.dtype], tensor.dim(), shape)
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

    def __call__(self${[...tensors, ...said.map((dim) => `${outside(dim)}${defaulted(dim) ? '=-1' : ''}`)].map((name) => `, ${name}`).join('')}):
        return torch.ops.heddle.${program}(${[...tensors, 'self.handle', ...said.map(outside)].join(', ')})
${stateful ? stateText(lowered.dims.map(outside)) : ''}`
}

/** Which open dimensions the shapes of inputs say, and which a caller has to; of these, those that may be left out come last. */
function sourcesOf({ dims, inputs, most }: Lowered, args: readonly string[]) {
  const axes = dims.flatMap((dim): Axis[] => {
    const found = inputs.flatMap(({ shape }, i) => {
      const axis = shape.findIndex(({ factor, dims: of }) => factor === 1 && of.length === 1 && of[0] === dim)
      return axis < 0 ? [] : [{ dim, input: args[i] ?? '', axis }]
    })
    return found.slice(0, 1)
  })
  const rest = dims.filter((dim) => !axes.some((axis) => axis.dim === dim))
  const defaulted = (dim: string): boolean => most[dim] !== undefined
  return { axes, said: [...rest.filter((dim) => !defaulted(dim)), ...rest.filter(defaulted)], defaulted }
}

const stateText = (dims: readonly string[]): string => `
    def states(self${dims.map((dim) => `, ${dim}`).join('')}) -> torch.Tensor:
        """Memory for the states at these sizes, as they are before the first run."""
        sizes = _numbers([${dims.join(', ')}])
        made = torch.empty(_bytes(_states_bytes, self.handle, sizes), dtype=torch.uint8, device=DEVICE)
        _reset(self.handle, sizes, made.data_ptr(), made.numel(), _stream(made.device))
        return made

    def write(self, states: torch.Tensor, name: str, value: torch.Tensor, ${dims.join(', ')}) -> None:
        """Sets a state to the elements of a tensor, as they lie in the state's layout."""
        value = value.contiguous()
        data, size = value.data_ptr(), value.numel() * value.element_size()
        _write(self.handle, _numbers([${dims.join(', ')}]), states.data_ptr(), states.numel(), STATES.index(name), data, size, _stream(states.device))

    def read(self, states: torch.Tensor, name: str, like: torch.Tensor, ${dims.join(', ')}) -> torch.Tensor:
        """The elements of a state, in a new tensor of the type and shape of \`like\`."""
        found = torch.empty_like(like, device=states.device, memory_format=torch.contiguous_format)
        data, size = found.data_ptr(), found.numel() * found.element_size()
        _read(self.handle, _numbers([${dims.join(', ')}]), states.data_ptr(), states.numel(), STATES.index(name), data, size, _stream(states.device))
        return found
`
