/**
 * Reads spec modules into verified kernels and layouts. Runs first in the pipeline. Unsupported source
 * is refused with a located diagnostic; all later passes may rely on the IR's rules.
 */
import { join } from 'node:path'
import type { CallExpression, Node } from 'ts-morph'
import { rejectedSpecs } from '../../errors.js'
import type { Kernel, SourceSpan } from '../../ir/kernel.js'
import type { Layout } from '../../ir/layout.js'
import { nameIn, slashed } from '../../path_names.js'
import { assemble, byName, type Declared } from '../cache/declared.js'
import { refusalsOf } from '../diagnostics/refusals.js'
import { type Diagnostic, printDiagnostic } from '../diagnostics/reject.js'
import { lowerLayout } from '../lower/layouts.js'
import { lowerOp } from '../lower/ops.js'
import { findDeclarators, openProject, type SpecProject, specFiles } from '../project/project.js'
import { readCached } from './cached.js'
import { declarationsIn, madeIn, nameOf, whileReading } from './declared.js'
import { readFiles } from './read_files.js'

export interface ReadOptions {
  /** The project's folder; paths in diagnostics and kernels are relative to it. */
  readonly root: string
  /** Folders, files or globs under the root. */
  readonly specs: readonly string[]
  /** Defaults to the root's `tsconfig.json`. */
  readonly tsconfig?: string
  /** Further spec modules that exist only in memory: path relative to the root, and text. */
  readonly files?: Readonly<Record<string, string>>
  /** Only ops of these names, and TypeScript's errors in their files: for an author who waits after a change of one. */
  readonly only?: ReadonlySet<string>
}

export interface Specs extends Declared {
  /** Sorted by location; nothing may be built while there are any. */
  readonly diagnostics: readonly Diagnostic[]
}

/** Reads spec modules of an open project. `files` are in memory, by path relative to the root. */
export function readProject(
  project: SpecProject,
  specs: readonly string[],
  files: Readonly<Record<string, string>> = {},
  only?: ReadonlySet<string>,
): Specs {
  const read = readFiles(project, specFiles(project, specs, files), only === undefined ? {} : { only })
  return { ...assemble(read.files, read.standard), diagnostics: read.diagnostics }
}

/**
 * Diagnostics of the ops and layouts of one file of an open project, sorted by location. Quick: neither other files nor TypeScript's errors are
 * considered, and names are not compared with those of other files.
 */
export function readFileAlone(project: SpecProject, path: string): readonly Diagnostic[] {
  const file = project.project.getSourceFile(path)
  return file === undefined ? [] : readFiles(project, [file], { alone: true }).diagnostics
}

/** Requested declarations of the shipped spec modules, sorted by name. */
export type Shipped = Pick<Specs, 'kernels' | 'layouts'>

/**
 * The named shipped ops, and every shipped layout, where they are not known (cache/shipped.ts). Shipped modules are free of errors. Their kernels keep
 * their locations in the package, so that the source generated from them equals the shipped source.
 * @param folder of the package
 */
export function readShipped(opened: SpecProject, folder: string, names: ReadonlySet<string>): Shipped {
  const files = opened.project.addSourceFilesAtPaths(slashed(join(folder, 'specs', '**', '*.ts')))
  const declarators = findDeclarators(opened)
  const layouts = new Map<CallExpression, Layout>()
  const layoutOf = (call: CallExpression): Layout => {
    const layout = layouts.get(call) ?? lowerLayout(call)
    layouts.set(call, layout)
    return layout
  }
  const placeOf = (node: Node): SourceSpan => {
    const { line, column } = node.getSourceFile().getLineAndColumnAtPos(node.getStart())
    return { file: nameIn(folder, node.getSourceFile().getFilePath()), line, column }
  }
  const ignoring = (_: CallExpression, action: () => void): void => void refusalsOf(action)
  const kernels: Kernel[] = []
  for (const file of files) {
    for (const declaration of [...declarationsIn(file, declarators), ...madeIn(file, declarators, ignoring)]) {
      const { kind, call, made } = declaration
      if (kind === 'layout') layoutOf(call)
      if (kind !== 'op' || !names.has(nameOf(declaration))) continue
      whileReading(declaration, placeOf, () => {
        kernels.push(
          lowerOp(call, placeOf(made?.at ?? call), { declarators, layoutOf, isStandard: false, spanOf: placeOf }).kernel,
        )
      })
    }
  }
  return { kernels: kernels.sort(byName), layouts: [...layouts.values()].sort(byName) }
}

/** Reads spec modules. @throws usage `frontend.no_specs`, `frontend.tsconfig` or `frontend.heddle` if there is nothing to read. */
export const readSpecs = ({ root, specs, tsconfig, files, only }: ReadOptions): Specs =>
  readProject(openProject(root, tsconfig), specs, files, only)

/** Reads spec modules that must be free of errors. @throws usage `frontend.rejected` with every diagnostic in its message. */
export const readSpecsOrThrow = ({ root, specs, tsconfig, files, only }: ReadOptions): Declared =>
  readProjectOrThrow(openProject(root, tsconfig), specs, files, only)

/** The same for an open project, of which only the changed modules are read. @throws usage `frontend.rejected` */
export function readProjectOrThrow(
  project: SpecProject,
  specs: readonly string[],
  files: Readonly<Record<string, string>> = {},
  only?: ReadonlySet<string>,
): Declared {
  const inMemory = Object.keys(files).length > 0
  const { diagnostics, ...read } = inMemory ? readProject(project, specs, files, only) : readCached(project, specs, only)
  if (diagnostics.length > 0) {
    throw rejectedSpecs(
      diagnostics.map((diagnostic) => {
        const { frame: _, ...place } = diagnostic
        return { text: printDiagnostic(diagnostic), place }
      }),
    )
  }
  return read
}
