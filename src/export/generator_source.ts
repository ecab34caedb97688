/** C++ source of an exported generator: one file of tables per program, and one file with the C interface and the work between programs. */

import type { LoweredGenerator, LoweredReader, LoweredStepper } from './generator.js'
import { api, lifetimeText, structText } from './lifetime.js'
import { memoryText, tablesText } from './source.js'
import { braced, quoted, wrapped } from './text.js'

/** Tables of one program. */
export const programText = ({ name, lowered }: LoweredReader | LoweredStepper): string =>
  `// ${lowered.name} under plan ${lowered.plan} in ${lowered.dtype}, made by \`heddle export\`.
#include "program.hpp"

${tablesText(lowered)}
namespace heddle::exported {

const Model& ${name}() { return model(); }

}  // namespace heddle::exported
`

export function generatorText(generator: LoweredGenerator): string {
  const { parts, reader, steppers } = generator
  const { name } = parts
  const list = (items: readonly string[]): string => (items.length === 0 ? '{}' : `{\n${wrapped(items, '          ')}}`)
  const stepper = ({ way, name: tables, dims, beginnings, said, kept }: LoweredStepper): string => `      {
          Way::${way},
          ${tables},
          ${braced(dims.map((dim) => `Quantity::${dim}`))},
          ${list(beginnings.map(({ state, how, integer, value }) => braced([String(state), `Begin::${how}`, String(integer), number(value)])))},
          ${list(said.map(({ attribute, step, attr }) => braced([`Attribute::${attribute}`, String(step), String(attr)])))},
          ${braced(kept.map(String))},
      },
`
  return `// Texts by ${name} under plan ${generator.plan} in ${generator.dtype}, made by \`heddle export\`.
#include "${name}.h"

#include <new>

#include "fail.hpp"
#include "generate.hpp"

namespace heddle::exported {

${[reader, ...steppers].map((each) => `const Model& ${each.name}();\n`).join('')}
namespace {

const Family& family() {
  static const Family made = {
      ${quoted(name)},
      ${parts.sources},
      ${[parts.vocab, parts.positions, parts.start, parts.pad].join(', ')},
      ${list(parts.ends.map(String))},
      ${list(parts.banned.map(String))},
      ${[parts.mostTopK, parts.mostBeams, parts.mostCandidates].join(', ')},
      {${reader.name}, ${braced(reader.dims.map((dim) => `Quantity::${dim}`))}, ${braced(reader.inputs.map((input) => `Input::${input}`))}},
      {
${steppers.map(stepper).join('')}      },
      ${parts.long?.after ?? 0},
      ${list(Object.entries(parts.long?.tensors ?? {}).map((pair) => braced(pair.map(quoted))))},
  };
  return made;
}

}  // namespace

}  // namespace heddle::exported

using namespace heddle::exported;

${interfaceText(name)}`
}

const number = (value: number): string =>
  Number.isInteger(value) && Math.abs(value) < 1e15 ? `${value}.0` : value.toExponential()

function interfaceText(name: string): string {
  const call = (verb: string, parameters: string, given: string): string =>
    `${api} int32_t ${name}_${verb}(${name}_generator* generator, ${parameters}, heddle_error* error) {
  return generator->generator->${verb}(${given}, error);
}
`
  return `${structText(name, 'generator')}
${lifetimeText(name, 'generator', 'family()')}
${call('begin', 'const heddle_prompts* prompts, const heddle_generation* generation, void* stream', 'prompts, generation, stream')}
${call('advance', 'uint32_t steps, void* stream', 'steps, stream')}
${call('ended', 'int32_t* ended, void* stream', 'ended, stream')}
${call('collect', 'const heddle_texts* texts, void* stream', 'texts, stream')}
${api} int32_t ${name}_generate(${name}_generator* generator, const heddle_prompts* prompts, const heddle_generation* generation,
                 const heddle_texts* texts, void* stream, heddle_error* error) {
  return generator->generator->generate(prompts, generation, texts, stream, error);
}

${memoryText(name)}`
}
