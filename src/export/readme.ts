/** README of an exported folder, for a reader with CMake and a compiler alone: build, call, options, memory, errors. */
import type { Target } from '../toolchain/index.js'
import type { LoweredGenerator } from './generator.js'
import { examplesOf, type Library, type Named } from './library.js'
import type { LoweredValue } from './lowered.js'
import { shapeText } from './text.js'

const building = (name: string, target: Target, examples: readonly string[] = ['build/example']): string => `## Build

\`\`\`bash
cmake -S . -B build -DHEDDLE_TARGET=${target} && cmake --build build --parallel
\`\`\`

Output: \`build/lib${name}.so\` and ${examples.map((each) => `\`${each}\``).join(', ')}. Neither Node nor heddle is needed: CMake 3.22 and a C++17 compiler, and for \`cuda\` the CUDA toolkit, version 12 or later. \`-DHEDDLE_TARGET=simt\` is
the CPU device, for tests; \`-DCMAKE_CUDA_ARCHITECTURES=90a-real\` compiles for one generation of GPUs alone, which is faster to build. As a part of another project:

\`\`\`cmake
add_subdirectory(this_folder)
target_link_libraries(your_program PRIVATE ${name})
\`\`\`
`

const errors = (own: readonly string[]): string => `## Errors

Every fallible function returns 0, or fills \`heddle_error\` and returns its status: \`message\` has the option, tensor or size, the value found and the value expected. Statuses from 1 on are in
\`include/heddle/abi.h\` (the device, memory, arguments), those from 100 on in \`include/heddle/export.h\` (100 to 103: a weight that is missing, unknown, of another type or shape; 104: an invalid size;
105: an invalid address; 106: too little memory)${own.length === 0 ? '.' : `, ${own.join(', ')}.`}
`

const where = (plan: string, dtype: string): string =>
  `Its kernels are those of plan \`${plan}\` in ${dtype}: it computes the same on both devices, and the same as a run from Node.`

const optionsText = ({ parts, steppers }: LoweredGenerator): string => `| option | meaning |
|---|---|
| \`choice\` | 0, greedy: the likeliest word of each step; 1: drawn; 2: beams. This export has ${steppers.map(({ way }) => `\`${way}\``).join(', ')} |
| \`max_new_tokens\` | maximum tokens of a text, including an end id; 0: 128, or as many as the model's positions allow |
| \`temperature\`, \`top_k\`, \`top_p\`, \`min_p\`, seeds | of draws; 0 disables each. A top_k of few words is at most ${parts.mostTopK} here. A text depends on its own seed and prompt, not on the rest of the batch |
| \`beams\`, \`returned\`, \`diversity_rate\` | of beams, at most ${parts.mostBeams}; texts are sorted from the best, with sums of natural log-probabilities |
| \`rule\`, \`length_penalty\`, \`early_stopping\` | rule 1: finished texts leave the beams, and are compared by sum / length^length_penalty (Hugging Face's \`generate\`); rule 0: FasterTransformer's |
| \`end_ids\` | ids that end a text instead of the model's own |
| \`chunk\` | prompt tokens per pass |
| \`on_step\`, \`on_words\` | called with the words of each step, by row (prompt * beams + beam), -1 if a row had ended; may end the generation there |

Incompatible options are refused, as are options for which the export has no program: \`heddle export\` writes more with \`--config '{ "choices": ["greedy", "sample", "beams", "hf"], "topK":
64, "beams": 4 }'\`. Settings in the model's \`generation_config.json\` are not followed, except for its end ids and the words it never says.
`

/** README of a generator's folder. */
export function generatorReadme(generator: LoweredGenerator, target: Target): string {
  const { parts, plan, dtype, steppers, reader } = generator
  const { name } = parts
  const ways = new Set(steppers.map(({ way }) => way))
  const what = parts.sources
    ? 'an encoder-decoder model: prompts are sources, which the encoder reads, and each text is generated anew'
    : 'a LLaMA-like model: a text continues its prompt, and prompts of a batch may have any lengths'
  return `# ${name}: texts by a model

A library that generates texts from token ids by ${what}. ${where(plan, dtype)} The caller converts text to ids, and ids to text.
${parts.vocab} words; ${parts.positions} positions; ids that end a text by default: ${parts.ends.join(', ') || 'none'}.

| file | contents |
|---|---|
| \`include/${name}.hpp\` | the generator in C++, header only: weights from their file, vectors, exceptions |
| \`include/${name}.h\`, \`include/heddle/generate.h\` | the interface in C, with every option and status |
| \`include/heddle/gather_tree.h\` | texts of a tree of beams, in C, for callers that run steps themselves |
| \`${name}_torch.py\` | the generator as an op of PyTorch |
| \`example/main.cpp\` | prompts from a file, texts to standard output |
| \`src/${name}.cpp\`, \`src/${name}_*.cpp\` | tables: contents of states before the first step, and each program's steps |
| \`src/export\`, \`kernels\`, \`src/device\` | the runtime, and the kernels that the programs launch |
| \`weights.safetensors\` | the weights as the plan reads them, without duplicates |

${building(name, target)}
## Call

\`\`\`cpp
#include "${name}.hpp"

${name}::Generator generator("weights.safetensors");
${name}::Options options;
options.max_new_tokens = 40;
options.choice = ${ways.has('beams') ? 'HEDDLE_BEAMS;\noptions.beams = 4' : 'HEDDLE_GREEDY'};
const auto texts = generator.generate({{5, 7, 1}, {9, 1}}, options);
// texts[prompt][i].ids, without the end id; .finish is HEDDLE_END, HEDDLE_LIMIT or HEDDLE_STOPPED
\`\`\`

Or from a shell, with one line of ids per prompt in \`prompts.txt\`: \`build/example weights.safetensors prompts.txt choice=2 beams=4 max_new_tokens=40\`.

${optionsText(generator)}
## Memory, streams and threads

Ids, lengths and results are host memory; weights are device memory of the caller, which must outlive the generator (\`${name}.hpp\` owns them). States and workspace are the generator's: \`begin\` allocates
them, and reuses them for later generations of at most that size. \`begin\` sets states to their contents before the first step.
\`${name}_generate\` is \`begin\`, steps by \`advance\`, \`ended\` after every eight of them, and \`collect\`. \`advance\` only enqueues on the caller's stream (a \`cudaStream_t\`; null: the default one), so
that it can be captured in a CUDA graph; without a capture, the steps of one generation are replayed as one graph too. One generation of a generator at a time. Several generators may share the same weights,
one per thread. On \`simt\`, calls return when they are done, and streams are ignored.
Reading prompts takes ${reader.lowered.steps.length} launches, a step ${steppers[0]?.lowered.steps.length ?? 0}.

${errors(['those from 110 on in `include/heddle/generate.h` (prompts; options; logits that are not numbers; a call before `begin`)'])}`
}

const value = ({ name, dtype, shape, layout }: LoweredValue): string =>
  `| \`${name}\` | ${dtype} | \`${shapeText(shape)}\`${layout === 'row' ? '' : `, layout ${layout}`} |`

const values = (title: string, of: readonly LoweredValue[]): string =>
  of.length === 0 ? '' : `\n| ${title} | type | shape |\n|---|---|---|\n${of.map(value).join('\n')}\n`

const lifeText = `## Memory, streams and threads

All data pointers are device memory, aligned to 16 bytes, and stay the caller's. A run allocates nothing and waits for nothing, so that it can be captured in a CUDA graph; a repeated run is replayed as a
graph without a capture. Runs of one program at a time; several programs may share the same weights. On \`simt\` a call returns when it is done, and streams are ignored.
`

/** Sizes, values and functions of a program. @param example executable that shows them */
function callText({ lowered, names }: Named, example: string): string {
  const { dims, fixed, inputs, outputs, states } = lowered
  const { program } = names
  const sizes = Object.entries(fixed).map(([dim, size]) => `${dim} = ${size}`)
  return `A run passes ${dims.map((dim) => `\`${dim}\``).join(', ') || 'no sizes'}${sizes.length === 0 ? '.' : `; fixed: ${sizes.join(', ')}.`}
${values('input', inputs)}${values('output', outputs)}${values('state', states)}
\`${program}_create\` takes weights by name, \`${program}_workspace_bytes\`${states.length > 0 ? ` and \`${program}_states_bytes\` return` : ' returns'} the device memory that a run needs, and \`${program}_run\` enqueues
one on a stream. ${
    states.length > 0
      ? `\`${program}_reset\` sets states to zeros if the program declares so; the others hold a poison pattern until \`${program}_write\` sets them.\n`
      : ''
  }\`example/${example === 'example' ? 'main' : program}.cpp\` shows all of this in a hundred lines: \`build/${example} weights.safetensors inputs.safetensors outputs.safetensors 1${dims.map((dim) => ` ${dim}=...`).join('')}\`.
`
}

/** README of a program's folder. */
export function programReadme({ lowered, names }: Named, library: string, target: Target, hasWeights: boolean): string {
  const { name, plan, dtype, states, steps } = lowered
  const { program } = names
  return `# ${name}

A library that runs \`${name}\`: ${steps.length} launches. ${where(plan, dtype)}

| file | contents |
|---|---|
| \`include/${program}.h\` | the interface in C: sizes, inputs, outputs${states.length > 0 ? ', states' : ''} |
| \`example/main.cpp\` | runs the program from safetensors files |
| \`${program}_torch.py\`, \`gather_tree_torch.py\` | the program as an op of PyTorch, and the trace of beams |
| \`src/${program}.cpp\`, \`src/export\`, \`kernels\`, \`src/device\` | its steps as tables, the runtime, and the kernels that it launches |
${hasWeights ? '| `weights.safetensors` | the weights as the plan reads them, by the names of the program |\n' : ''}
${building(library, target)}
## Call

${callText({ lowered, names }, 'example')}
${lifeText}
${errors([])}`
}

/** README of a folder with several programs. */
export function libraryReadme(library: Library, target: Target): string {
  const { name, programs } = library
  const row = ({ lowered, names }: Named): string =>
    `| \`${lowered.name}\` | ${lowered.plan} | ${lowered.dtype} | \`include/${names.program}.h\` | \`${names.program}_torch.py\` | ${lowered.steps.length} |`
  return `# ${name}

A library of ${programs.length} programs with one runtime. They compute the same on both devices, and the same as runs from Node. \`include/${name}.h\` includes the headers of all.

| program | plan | type | header | op of PyTorch | launches |
|---|---|---|---|---|---|
${programs.map(row).join('\n')}

${building(
  name,
  target,
  examplesOf(library).map(([example]) => `build/${example.name}`),
)}
${examplesOf(library)
  .map(([example, each]) => `## ${each.names.program}\n\n${callText(each, example.name)}`)
  .join('\n')}
${lifeText}
${errors([])}`
}
