/** C++ source of an exported program: its tables, its sizes, and the C interface over native/export. */
import { abiType } from '../ir/dtype.js'
import type { CNames } from './header.js'
import { api, lifetimeText, structText } from './lifetime.js'
import { type Choice, keysOf, type Lowered, type LoweredStep } from './lowered.js'
import { braced, quoted, sizeText, wrapped } from './text.js'

export function sourceText(lowered: Lowered, names: CNames): string {
  const { program } = names
  return `// ${lowered.name} under plan ${lowered.plan} in ${lowered.dtype}, made by \`heddle export\`.
#include "${program}.h"

#include <new>

#include "fail.hpp"
#include "program.hpp"

${tablesText(lowered)}
${interfaceText(program)}`
}

/** Launchers, sizes and tables of a program, returned by `model()`. */
export function tablesText(lowered: Lowered): string {
  const keys = [...new Set(lowered.steps.flatMap(keysOf))].sort()
  return `extern "C" {
${keys.map((key) => `int32_t heddle_launch_${key}(const heddle_launch* launch, heddle_error* error);\n`).join('')}}

namespace {

using namespace heddle::exported;

${measureText(lowered)}
${modelText(lowered)}
}  // namespace
`
}

/** Bytes of storages, and the numbers of all steps concatenated. */
function measureText({ dims, most, storages, steps }: Lowered): string {
  const bytes = storages.map((storage) => sizeText(storage.bytes))
  const numbers = [...steps.flatMap((step) => step.numbers), ...sizedAttrs(steps).map(({ extent }) => extent)].map(sizeText)
  const mosts = dims.map((dim) => (most[dim] === undefined ? '0' : sizeText(most[dim])))
  const used = [...bytes, ...numbers, ...mosts].join(' ')
  const read = dims.flatMap((dim, i) =>
    new RegExp(`\\bd_${dim}\\b`).test(used) ? [`  const Size d_${dim} = dims[${i}];\n`] : [],
  )
  return `void measure(${read.length === 0 ? 'const int64_t*' : 'const int64_t* dims'}, Measure& measured) {
${read.join('')}  measured.bytes = {
${wrapped(bytes, '      ')}};
  measured.numbers = {
${wrapped(numbers, '      ')}};
  measured.most = ${braced(mosts)};
}
`
}

interface SizedAttr {
  readonly step: number
  readonly attr: number
  readonly extent: Parameters<typeof sizeText>[0]
}

const sizedAttrs = (steps: readonly LoweredStep[]): readonly SizedAttr[] =>
  steps.flatMap(({ attrs }, step) =>
    attrs.flatMap((attr, i) => (typeof attr === 'number' ? [] : [{ step, attr: i, extent: attr }])),
  )

const choiceText = ({ key, architecture, length, depth, fromRows, toRows }: Choice): string =>
  braced([
    `heddle_launch_${key}`,
    quoted(architecture),
    ...[length, depth, fromRows].map(String),
    toRows === undefined ? 'INT64_MAX' : String(toRows),
  ])

/** A double as C++ reads it back. */
const doubleText = (value: number): string => (Number.isInteger(value) ? `${value}.0` : String(value))

function modelText(lowered: Lowered): string {
  const { name, dims, weights, inputs, outputs, states, storages, steps, moved, fenced } = lowered
  const tensor = (each: (typeof weights)[number]['parts'][number]): string =>
    braced([quoted(each.name), String(abiType(each.dtype)), braced(each.shape.map(String))])
  const rows = (items: readonly string[]): string =>
    items.length === 0 ? '{}' : `{\n${items.map((item) => `          ${item},\n`).join('')}      }`
  let at = 0
  const lines = steps.map((step) => {
    const first = at
    at += step.numbers.length
    const { kind, label, key, attrs, dtypes: types, bias = -1, residual = -1, relu, choices = [] } = step
    return braced([
      `Kind::${kind}`,
      quoted(label),
      key === undefined ? 'nullptr' : `heddle_launch_${key}`,
      braced(step.storages.map(String)),
      braced(attrs.map((attr) => (typeof attr === 'number' ? doubleText(attr) : '0.0'))),
      String(first),
      String(step.numbers.length),
      braced(types.map((type) => String(abiType(type)))),
      String(bias),
      String(residual),
      relu ? '1' : '0',
      braced(choices.map(choiceText)),
    ])
  })
  const sized = sizedAttrs(steps).map(({ step, attr }, i) => braced([String(step), String(attr), String(at + i)]))
  return `const Model& model() {
  static const Model made = {
      ${quoted(name)},
      ${braced(dims.map(quoted))},
      ${rows(weights.map((weight) => braced([tensor(weight), String(weight.bytes), braced(weight.parts.map(tensor))])))},
      ${braced(inputs.map((input) => quoted(input.name)))},
      ${braced(outputs.map((output) => quoted(output.name)))},
      ${rows(states.map((state) => braced([quoted(state.name), String(state.storage), String(state.cleared)])))},
      ${rows(storages.map(({ home, index, first, last }) => braced([`Home::${home}`, String(index), String(first), String(last)])))},
      ${rows(lines)},
      ${braced(sized)},
      ${braced(moved.map(({ output, storage }) => braced([String(output), String(storage)])))},
      ${fenced},
      measure,
  };
  return made;
}
`
}

function interfaceText(program: string): string {
  return `${structText(program, 'program')}
namespace {

// All fields of each struct have one type, so that it can be read as an array.
const int64_t* numbers(const ${program}_dims* dims) { return reinterpret_cast<const int64_t*>(dims); }
const void* const* pointers(const ${program}_inputs* inputs) { return reinterpret_cast<const void* const*>(inputs); }
void* const* pointers(const ${program}_outputs* outputs) { return reinterpret_cast<void* const*>(outputs); }

int32_t bytes_of(uint64_t Bound::*which, ${program}_program* program, const ${program}_dims* dims, uint64_t* bytes, heddle_error* error) {
  const auto bound = program->program->bind(numbers(dims), error);
  if (bound == nullptr) return error->status;
  *bytes = (*bound).*which;
  return HEDDLE_OK;
}

}  // namespace

${lifetimeText(program, 'program', 'model()')}
${api} int32_t ${program}_workspace_bytes(${program}_program* program, const ${program}_dims* dims, uint64_t* bytes, heddle_error* error) {
  return bytes_of(&Bound::workspace, program, dims, bytes, error);
}

${api} int32_t ${program}_states_bytes(${program}_program* program, const ${program}_dims* dims, uint64_t* bytes, heddle_error* error) {
  return bytes_of(&Bound::states, program, dims, bytes, error);
}

${api} int32_t ${program}_reset(${program}_program* program, const ${program}_dims* dims, void* states, uint64_t states_bytes,
                 void* stream, heddle_error* error) {
  return program->program->reset(numbers(dims), states, states_bytes, stream, error);
}

${api} int32_t ${program}_write(${program}_program* program, const ${program}_dims* dims, void* states, uint64_t states_bytes,
                 uint32_t state, const void* from, uint64_t bytes, void* stream, heddle_error* error) {
  void* to = program->program->state(numbers(dims), states, states_bytes, state, bytes, error);
  return to == nullptr ? error->status : copy(to, from, bytes, stream, error);
}

${api} int32_t ${program}_read(${program}_program* program, const ${program}_dims* dims, void* states, uint64_t states_bytes,
                uint32_t state, void* to, uint64_t bytes, void* stream, heddle_error* error) {
  const void* from = program->program->state(numbers(dims), states, states_bytes, state, bytes, error);
  return from == nullptr ? error->status : copy(to, from, bytes, stream, error);
}

${api} int32_t ${program}_run(${program}_program* program, const ${program}_dims* dims, const ${program}_inputs* inputs, const ${program}_outputs* outputs,
               void* states, uint64_t states_bytes, void* workspace, uint64_t workspace_bytes, void* stream, heddle_error* error) {
  return program->program->run({numbers(dims), pointers(inputs), pointers(outputs), states, states_bytes, workspace, workspace_bytes, stream}, error);
}

${memoryText(program)}`
}

/** Device memory, for callers without a device API of their own. */
export function memoryText(name: string): string {
  return `${api} int32_t ${name}_allocate(uint64_t bytes, void** data, heddle_error* error) { return allocate(bytes, data, error); }
${api} int32_t ${name}_release(void* data, heddle_error* error) { return release(data, error); }
${api} int32_t ${name}_copy(void* to, const void* from, uint64_t bytes, void* stream, heddle_error* error) {
  return copy(to, from, bytes, stream, error);
}
${api} int32_t ${name}_wait(void* stream, heddle_error* error) { return wait(stream, error); }
${api} const char* ${name}_target(void) { return target(); }
`
}
