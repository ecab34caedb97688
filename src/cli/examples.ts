/** Examples at the end of each verb's help: command lines with descriptions. They use only options that the verb has. */

type Example = readonly [command: string, does: string]

/** Examples by verb. */
const examples: Readonly<Record<string, readonly Example[]>> = {
  init: [
    ['heddle init my-op', 'an op, its check, and a script that calls it'],
    ['heddle init my-graph --template graph', 'a graph and a plan that fuses it'],
  ],
  gen: [
    ['heddle gen', 'write generated/ from specs/'],
    ['heddle gen --check', 'exit 1 if generated/ is out of date, for CI'],
  ],
  watch: [
    ['heddle watch', 'compile and check every save'],
    ['heddle watch --device simt', 'the same on the CPU device'],
  ],
  dev: [
    ['heddle dev', 'a live page of the project'],
    ['heddle dev rms_norm --device simt', 'of one op, checked on the CPU device'],
    ['heddle dev feed_forward --on gpu-box', 'with the times of a GPU elsewhere after each save'],
  ],
  check: [
    ['heddle check', 'everything in the project, every storage type'],
    ['heddle check rms_norm --device simt --dtype f32', 'one op on the CPU device'],
    ['heddle check rms_norm --on gpu-box', 'on a machine of ~/.ssh/config, where nothing is installed'],
  ],
  repro: [
    ['heddle repro rms_norm', 'one case as a folder that builds without heddle'],
    ['heddle repro rms_norm --dtype f16 --out rms.tar.gz', 'the same as one file'],
  ],
  explain: [
    ['heddle explain HED107', 'a code of a refused body'],
    ['heddle explain plan.illegal', 'a code of a plan'],
  ],
  inspect: [
    ['heddle inspect rms_norm', 'body, IR, schedule, source, registers'],
    ['heddle inspect rms_norm --passes', 'the kernel after each pass'],
  ],
  'plan show': [
    ['heddle plan show best-encoder', 'kernels, bytes and predicted times'],
    ['heddle plan show ft-v1 --shape 8x128 --dtype f16', 'at other sizes'],
  ],
  'plan diff': [
    ['heddle plan diff ft-v1 best-encoder', 'which kernels differ, and what they cost'],
    ['heddle plan diff unfused best-encoder --shape 32x128', 'at other sizes'],
  ],
  'plan list': [
    ['heddle plan list', 'plans and their graphs'],
    ['heddle plan list --json', 'the same for a program'],
  ],
  explore: [
    ['heddle explore', 'serve a page of the first plan'],
    ['heddle explore rms_norm --out page.html', 'save a page of one kernel'],
  ],
  bench: [
    ['heddle bench rms_norm --shape m=4096,n=1024', 'a kernel beside its floor'],
    ['heddle bench feed_forward --plans fused --save before.json', 'a graph, to compare later times with'],
    ['heddle bench feed_forward --on "docker exec -i box"', 'on the device of a container'],
  ],
  pack: [
    ['heddle pack bench feed_forward -o job.tar.xz', 'then there: tar -xf job.tar.xz && ./job/run'],
    ['heddle pack check -o check.tar.gz', 'and here: heddle check --read result.json'],
  ],
  'bench suite': [
    ['heddle bench suite --save', 'the suites of bench.ts, added to the history'],
    ['heddle bench suite --predicted h200 --format markdown', 'prices of a GPU that is not here, for a pull request'],
  ],
  'bench history': [
    ['heddle bench history --out history.html', 'changes over commits, and a page'],
    ['heddle bench history --format github --fail-on-regression', 'in a workflow'],
  ],
  'bench encoder': [
    ['heddle bench encoder --config bert-base --plans best-encoder', 'a BERT encoder'],
    ['heddle bench encoder --shapes 8x128,32x128 --lengths half --peer torch', 'padded batches beside PyTorch'],
  ],
  'bench decoding': [
    ['heddle bench decoding --batch 1,8 --beam 4', 'beam search'],
    ['heddle bench decoding --batch 8 --top-k 4 --dtype f16', 'sampling'],
  ],
  'bench llama': [
    ['heddle bench llama 7b --plans best-llama', 'prompts and steps of a 7B model'],
    ['heddle bench llama --config DIR --steps 1x512', 'the shape of a model folder'],
  ],
  search: [
    ['heddle search layer --minutes 4', 'a plan of a graph at its usual size'],
    ['heddle search layer --shape m=64,n=768 --shape m=4096,n=768', 'a plan for two sizes'],
  ],
  tune: [
    ['heddle tune', 'measure kernels of the project on this GPU'],
    ['heddle tune --kernels rms_norm --lengths 1024,4096', 'some kernels at some row lengths'],
  ],
  demo: [
    ['heddle demo', 'restore punctuation with a small BERT'],
    ['heddle demo --verbose', 'with the stack of an error'],
  ],
  run: [
    ['heddle run DIR --text "In the beginning" --max-new-tokens 20', 'continue a text'],
    ['heddle run DIR --cases cases.jsonl --plan best-encoder --json', 'a file of cases, results as JSON'],
  ],
  score: [
    ['heddle score DIR --cases texts.jsonl', 'log-probabilities of texts'],
    ['heddle score DIR --cases texts.jsonl --plan best-llama-w8a8', 'the same under an INT8 plan'],
  ],
  calibrate: [
    ['heddle calibrate DIR --cases cases.jsonl --out scales.json', 'scales of INT8 activations'],
    ['heddle calibrate DIR --cases cases.jsonl --method max --weights per-tensor --out scales.json', 'other choices'],
    ['heddle calibrate DIR --import amax.json --out scales.json', "a list in FasterTransformer's order"],
    ['heddle calibrate DIR --from-checkpoint --out scales.json', 'quantisers of the checkpoint'],
    ['heddle calibrate LLAMA --cases cases.jsonl --out channels.json', 'channels, for --smooth'],
  ],
  build: [
    ['heddle build', 'the addon, the device and all kernels'],
    ['heddle build --target cuda --check', 'compile CUDA sources for warnings and spills only'],
    ['heddle build --target cuda --architecture sm_89,sm_90 --filter "^rms_norm__" --sizes --limit-kb 500', 'sizes of a kernel'],
  ],
  export: [
    ['heddle export rms_norm --target simt --out rms', 'a kernel as C++ for the CPU device'],
    ['heddle export bert --model DIR --plan best-encoder', 'a model with its weights'],
    ['heddle export rms_norm layer_norm --dtype f32,f16 --library norms --out norms', 'two kernels in two types as one library'],
  ],
  bundle: [
    ['heddle bundle', 'Node, heddle and built kernels in one archive'],
    ['heddle bundle --model DIR', 'with a model folder'],
    ['heddle bundle --npm packages --model DIR', "packages for npm, with a model's kernels for the CPU device"],
  ],
  config: [
    ['heddle config --flags --includes', 'for nvcc'],
    ['heddle config --cmake', 'for -Dheddle_DIR of CMake'],
    ['heddle config --flags --includes --target simt', 'for a C++ compiler, which also needs -x c++'],
  ],
  doctor: [
    ['heddle doctor', 'compilers, GPU, libraries'],
    ['heddle doctor --on gpu-box', 'another machine, and who uses its GPU'],
    ['heddle doctor --json', 'the same for a program'],
  ],
  selftest: [
    ['heddle selftest --device simt', 'all shipped kernels on the CPU device'],
    ['heddle selftest --filter attention', 'kernels whose name matches'],
  ],
  clean: [
    ['heddle clean', 'remove .heddle of this project'],
    ['heddle clean --cache', 'and kernels compiled for all projects'],
  ],
  help: [
    ['heddle help check', 'one verb'],
    ['heddle help plan show', 'a verb of two words'],
  ],
}

/** Verbs with examples. */
export const verbsWithExamples = Object.keys(examples)

/** Example command lines of a verb. */
export const examplesOf = (verb: string): readonly string[] => (examples[verb] ?? []).map(([command]) => command)

/** Example section of a verb's help; empty without examples. */
export function examplesHelp(verb: string): string {
  const lines = examples[verb] ?? []
  const width = Math.max(0, ...lines.map(([command]) => command.length))
  return lines.length === 0
    ? ''
    : `\nExamples:\n${lines.map(([command, does]) => `  ${command.padEnd(width)}  # ${does}\n`).join('')}`
}
