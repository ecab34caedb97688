/** Texts of a reproduction: the case as C++ tables, the commands that build and run it, and the folder's README. */
import { render } from '../emit/templates.js'
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
  return render('repro_case', {
    key: entry.key,
    name: quoted(name),
    dims: listText(
      'int64_t',
      'dims',
      entry.dims.map((dim) => [dim, String(dims[dim] ?? 1)]),
    ),
    attrs: listText(
      'double',
      'attrs',
      entry.attrs.map((attr) => [attr.name, doubleText(attrs[attr.name] ?? attr.default)]),
    ),
    blockBytes: before.byteLength,
    guardByte,
    buffers: placed.map((each) => bufferText(each, wanted)),
  })
}

/** A named list of values, after a comment with the name of each. */
const listText = (type: string, name: string, items: readonly (readonly [name: string, value: string])[]): string =>
  `// ${items.map(([each]) => each).join(', ') || 'none'}\nconst std::vector<${type}> ${name} = ${braced(items.map(([, value]) => value))};`

/** A buffer as an initialiser of `Buffer`. */
function bufferText({ buffer, offset, bytes }: PreparedCase['placed'][number], wanted: PreparedCase['wanted']): string {
  const bound = wanted.get(buffer.name)?.bound ?? { absolute: 0, relative: 0 }
  return braced([
    quoted(buffer.name),
    String(abiType(buffer.dtype)),
    String(buffer.access === 'out'),
    buffer.updates === undefined ? 'nullptr' : quoted(buffer.updates),
    String(offset),
    String(bytes),
    String(poisonByte(buffer.dtype)),
    doubleText(bound.absolute),
    doubleText(bound.relative),
  ])
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
