/**
 * Machine code of a generated source file as SASS, with the source line of each instruction. nvcc compiles the file with line information and
 * nvdisasm prints it. With cuobjdump alone, the instructions have no lines. For pages of a kernel.
 */
import { basename } from 'node:path'
import { cacheFolder } from '../cache_folder.js'
import { HeddleError } from '../errors.js'
import { findDisassembler, findNvcc } from './compilers.js'
import { compileFiles } from './objects.js'
import { packageRoot } from './paths.js'
import { firstLines, runTool } from './process.js'
import { recipeFor } from './recipe.js'
import { keyFiles, type SourceFile } from './sources.js'
import { readableNames } from './symbol.js'

/** Instructions of one kernel. */
export interface Disassembly {
  /** Name with template arguments; the symbol if it cannot be demangled. */
  readonly kernel: string
  readonly text: string
  /** Lines of the generated source by line of `text`, from 1, innermost first; empty for a line without an instruction. */
  readonly lines: readonly (readonly number[])[]
}

/** Machine code of the kernels of a file; or the reason why there is none. */
export type Disassembled = { readonly from: string; readonly kernels: readonly Disassembly[] } | { readonly missing: string }

/** `//## File "/a/vector.cuh", line 12 inlined at "/a/softmax.cu", line 40`: one or more lines before the instruction. */
const place = /^\s*\/\/## File "([^"]*)", line (\d+)/
/** `        /*0070*\/               @P0 EXIT ;`, followed by the encoding in cuobjdump. */
const instruction = /^\s*\/\*[0-9a-f]{4,}\*\/\s+([^;]*;)/
/** Begin of a kernel: `.text.SYMBOL:` of nvdisasm, `Function : SYMBOL` of cuobjdump. */
const beginning = /^(?:\.text\.|\s*Function : )([^\s:]+)/
const label = /^(\.L_x_\d+):/

/** Parses the output of nvdisasm or cuobjdump, without directives and encodings. @param file source file whose lines are reported */
export function readDisassembly(printed: string, file: string): readonly Disassembly[] {
  const kernels: { readonly kernel: string; readonly text: string[]; readonly lines: number[][] }[] = []
  let sourceLines: number[] = []
  let isPlaced = false
  for (const line of printed.split('\n')) {
    const [, path, number] = place.exec(line) ?? []
    if (path !== undefined) {
      if (!isPlaced) sourceLines = []
      isPlaced = true
      if (basename(path) === basename(file) && !sourceLines.includes(Number(number))) sourceLines.push(Number(number))
      continue
    }
    const kernel = beginning.exec(line)?.[1]
    if (kernel !== undefined) kernels.push({ kernel, text: [], lines: [] })
    const last = kernels.at(-1)
    const [printedInstruction, target] = [instruction.exec(line)?.[1], label.exec(line)?.[1]]
    if (printedInstruction !== undefined) {
      last?.text.push(`    ${printedInstruction}`)
      last?.lines.push(sourceLines)
      isPlaced = false
    } else if (target !== undefined) {
      last?.text.push(`${target}:`)
      last?.lines.push([])
    }
  }
  return kernels.map(({ kernel, text, lines }) => ({ kernel, text: text.join('\n'), lines }))
}

/** Architecture of the shown code: one is enough to see the instructions of a line. */
const architecture = '90'

/** @throws environment `cache.*`; the signal's reason */
export async function disassemble(source: SourceFile, signal: AbortSignal | undefined): Promise<Disassembled> {
  const [nvcc, tool] = await Promise.all([findNvcc(), findDisassembler()])
  if (nvcc === undefined) return { missing: 'there is no nvcc on this machine' }
  if (tool === undefined)
    return {
      missing: 'there is neither nvdisasm nor cuobjdump on this machine (searched in PATH, beside nvcc, in /usr/local/cuda/bin)',
    }
  const recipe = await recipeFor('cuda', packageRoot(), { architecture, codeOnly: true, lineInfo: true, nvcc })
  const files = await keyFiles(recipe, [source])
  try {
    const [built] = await compileFiles(recipe, files, { cache: cacheFolder(), signal, spills: 'reported' })
    if (built === undefined) return { missing: `nvcc produced no object for ${source.source}` }
    const args = tool.name === 'nvdisasm' ? ['--print-line-info-inline', '--print-code'] : ['-sass']
    const { exitCode, stdout, stderr } = await runTool(tool.path, [...args, built.object], { signal })
    if (exitCode !== 0) return { missing: `${tool.path} refused the machine code of ${nvcc.version}: ${firstLines(stderr, 1)}` }
    const kernels = readDisassembly(stdout, source.path)
    const [names] = await readableNames([kernels.map(({ kernel }) => kernel)], signal)
    const named = kernels.map((each) => ({ ...each, kernel: names?.get(each.kernel) ?? each.kernel }))
    return { from: `${tool.name}, ${tool.version}, sm_${architecture}`, kernels: named }
  } catch (error) {
    if (!(error instanceof HeddleError && error.code === 'build.compile')) throw error
    return { missing: `nvcc refuses ${basename(source.path)}` }
  }
}
