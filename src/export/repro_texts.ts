/** Texts of a reproduction: the case as C++ tables, the commands that build and run it, and the folder's README. */
import { abiType } from '../ir/dtype.js'
import type { NativeDeviceInfo } from '../runtime/native.js'
import type { Target } from '../toolchain/index.js'
import { guardByte, poisonByte } from '../verify/block.js'
import type { CheckResult, PreparedCase } from '../verify/conformance.js'
import { braced, quoted } from './text.js'

/** Facts about the machine and device of the run. */
export interface ReproFacts {
  readonly heddle: string
  readonly device: NativeDeviceInfo
  readonly cxx: string
  readonly nvcc: string
}

/** Commands that build and run a folder, per target. */
export type ReproCommands = Readonly<Record<Target, readonly string[]>>

/** A double as C++ reads it back. */
function doubleText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return 'std::numeric_limits<double>::infinity()'
  return Number.isInteger(value) && Math.abs(value) < 1e15 ? `${value}.0` : String(value)
}

/** The case as tables that native/repro/main.cpp reads. */
export function caseText({ test, placed, before, wanted }: PreparedCase): string {
  const { entry, dims, attrs, name } = test
  const buffers = placed.map(({ buffer, offset, bytes }) => {
    const bound = wanted.get(buffer.name)?.bound ?? { absolute: 0, relative: 0 }
    const isOutput = buffer.access === 'out'
    return braced([
      quoted(buffer.name),
      String(abiType(buffer.dtype)),
      String(isOutput),
      buffer.updates === undefined ? 'nullptr' : quoted(buffer.updates),
      String(offset),
      String(bytes),
      String(poisonByte(buffer.dtype)),
      doubleText(bound.absolute),
      doubleText(bound.relative),
    ])
  })
  const list = (type: string, what: string, items: readonly string[], names: readonly string[]): string =>
    `// ${names.join(', ') || 'none'}\nconst std::vector<${type}> ${what} = ${braced(items)};`
  return `// One case of a kernel: places of its buffers, and tolerances of its results. Made by \`heddle repro\`.
#include <cstdint>
#include <limits>
#include <vector>

#include "heddle/abi.h"

extern "C" int32_t heddle_launch_${entry.key}(const heddle_launch* launch, heddle_error* error);

namespace repro {

const char* const name = ${quoted(name)};
const heddle_launcher launcher = heddle_launch_${entry.key};

${list(
  'int64_t',
  'dims',
  entry.dims.map((dim) => String(dims[dim] ?? 1)),
  entry.dims,
)}
${list(
  'double',
  'attrs',
  entry.attrs.map((attr) => doubleText(attrs[attr.name] ?? attr.default)),
  entry.attrs.map((attr) => attr.name),
)}

struct Buffer {
  const char* name;
  int32_t dtype;  // heddle_dtype
  bool is_output;
  const char* updates;  // the input whose memory this output shares
  uint64_t offset, bytes;
  int poison;  // every byte of an output before the run
  double absolute, relative;  // an element passes when |stored - expected| <= absolute + relative * |expected|
};

const size_t block_bytes = ${before.byteLength};
const int guard_byte = ${guardByte};
const Buffer buffers[] = {
${buffers.map((buffer) => `    ${buffer},\n`).join('')}};

}  // namespace repro
`
}

/** @param isHopper true if the source has parts for sm_90a alone */
export function reproCommands(isHopper: boolean): ReproCommands {
  const run = './repro'
  const simt =
    'c++ -std=c++17 -O1 -ffp-contract=off -DHEDDLE_SIMT=1 -I. -Iinclude main.cpp workers.cpp -x c++ kernel.cu -o repro -pthread'
  const architecture = isHopper ? 'sm_90a' : 'native'
  return { simt: [simt, run], cuda: [`nvcc -std=c++17 -O3 -arch=${architecture} -I. -Iinclude main.cpp kernel.cu -o repro`, run] }
}

export function readmeText(
  { test, placed }: PreparedCase,
  { passed, detail }: CheckResult,
  { heddle, device, cxx, nvcc }: ReproFacts,
  commands: ReproCommands,
): string {
  const { entry, name, dims, attrs } = test
  const capability = device.computeCapability === undefined ? '' : `, compute capability ${device.computeCapability}`
  const shapes = placed.map(({ buffer, shape }) => {
    const layout = buffer.layout === 'row' ? '' : `, layout ${buffer.layout}`
    const role = buffer.access === 'in' ? 'read' : buffer.updates === undefined ? 'written' : `updates ${buffer.updates}`
    return `| \`${buffer.name}\` | ${buffer.dtype} | ${shape.join(' x ') || 'one number'}${layout} | ${role} |\n`
  })
  const block = (lines: readonly string[]): string => `\`\`\`sh\n${lines.join('\n')}\n\`\`\`\n`
  const numbers = (of: Readonly<Record<string, number>>): string =>
    Object.entries(of)
      .map(([key, value]) => `${key}=${value}`)
      .join(' ') || 'none'
  return `# ${name}

One run of the kernel \`${entry.key}\`, and the results of its body. heddle is not needed. On the CPU device, with any C++17 compiler:

${block(commands.simt)}
On a GPU, with nvcc 12 or later:

${block(commands.cuda)}
It exits with 0 if stored and expected values agree, and with 1 if they differ or the kernel faults. Here it ${passed ? 'agreed' : 'did not agree'}:

    ${detail.split('\n').join('\n    ')}

| tensor | storage | shape | role |
|---|---|---|---|
${shapes.join('')}
Dimensions: ${numbers(dims)}. Attributes: ${numbers(attrs)}.

| file | contents |
|---|---|
| \`kernel.cu\` | the generated source, digest ${entry.digest} |
| \`include\` | the headers that it includes |
| \`inputs.safetensors\` | inputs, as they are stored |
| \`expected.safetensors\` | results of the body, in doubles |
| \`case.hpp\` | places of buffers, dimensions, attributes, tolerances |
| \`main.cpp\` | the driver: guard bands around buffers, poisoned outputs, the comparison |

Written by heddle ${heddle} on ${device.kind} (${device.name}${capability}). C++ compiler: ${cxx}. nvcc: ${nvcc}.
`
}
