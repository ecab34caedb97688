/**
 * Reading spec modules: verified kernels and layouts. Runs first on the road. What it does not understand
 * it refuses, with a located diagnostic; everything later may rely on the IR's rules.
 */
import { join, relative } from 'node:path'
import { type CallExpression, Node, type SourceFile, SyntaxKind, type Symbol as TsSymbol, ts } from 'ts-morph'
import { usageError } from '../errors.js'
import type { Kernel, SourceSpan } from '../ir/kernel.js'
import type { Layout } from '../ir/layout.js'
import { type Diagnostic, locate, printDiagnostic, Rejection, reject, toDiagnostic } from './diagnostics.js'
import { lowerLayout } from './layouts.js'
import { checkNesting } from './nesting.js'
import { lowerOp } from './ops.js'
import { failureHint, findDeclarators, guarded, openProject, type SpecProject, specFiles, standardFiles } from './project.js'
import { type Declarators, declares } from './static.js'

export interface ReadOptions {
  /** The project's folder; paths in diagnostics and kernels are relative to it. */
  readonly root: string
  /** Folders, files or globs under the root. */
  readonly specs: readonly string[]
  /** Defaults to the root's `tsconfig.json`. */
  readonly tsconfig?: string
  /** Further spec modules that exist only in memory: path relative to the root, and text. */
  readonly files?: Readonly<Record<string, string>>
}

export interface Specs {
  /** In the order of their names. */
  readonly kernels: readonly Kernel[]
  /** Those of the standard library that no spec module re-exports: for what graphs and plans bring in. */
  readonly standard: readonly Kernel[]
  readonly layouts: readonly Layout[]
  /** In the order of their places; nothing may be built while there are any. */
  readonly diagnostics: readonly Diagnostic[]
}

interface Declaration {
  readonly kind: 'op' | 'layout'
  readonly call: CallExpression
  readonly isExported: boolean
}

const exportsOf = (file: SourceFile): readonly TsSymbol[] =>
  file.getExportSymbols().map((symbol) => symbol.getAliasedSymbol() ?? symbol)

/** Every op and layout a file declares. A declaration's functions declare nothing, so they are not searched. */
function declarationsIn(file: SourceFile, declarators: Declarators): Declaration[] {
  const exported = new Set(exportsOf(file).map(({ compilerSymbol }) => compilerSymbol))
  const found: Declaration[] = []
  file.forEachDescendant((node, traversal) => {
    const kind = declares(node, declarators)
    if (!Node.isCallExpression(node) || kind === undefined || kind === 'tensor') return
    traversal.skip()
    const parent = node.getParent()
    const symbol = Node.isVariableDeclaration(parent) ? parent.getSymbol()?.compilerSymbol : undefined
    found.push({
      kind,
      call: node,
      isExported: Node.isExportAssignment(parent) || (symbol !== undefined && exported.has(symbol)),
    })
  })
  return found
}

/** What TypeScript itself says about a file, where the front end has not said it better. */
function typeErrors(file: SourceFile, { project, fileName }: SpecProject, refused: readonly Rejected[]): Diagnostic[] {
  const program = project.getProgram().compilerObject
  const source = file.compilerNode
  const found = guarded(
    () => [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)],
    (failure): readonly ts.Diagnostic[] => {
      // What was refused in the file is what TypeScript could not take either.
      if (!refused.some(({ declaration }) => declaration.getSourceFile() === file))
        reject('typeScript', file, failure, failureHint)
      return []
    },
  )
  return found.flatMap(({ start = 0, length = 1, code, messageText }): Diagnostic[] => {
    const place = locate(file, start, length)
    const isCovered = refused.some(
      ({ declaration, diagnostic }) =>
        (declaration.getSourceFile() === file && declaration.getPos() <= start && start < declaration.getEnd()) ||
        (diagnostic.file === fileName(file) && diagnostic.line === place.line),
    )
    const message = ts.flattenDiagnosticMessageText(messageText, '\n')
    return isCovered ? [] : [{ code: `TS${code}`, message, file: fileName(file), ...place }]
  })
}

/** The refusal that an action ends with; undefined where it does not. */
function refusalOf(action: () => void): Rejection | undefined {
  try {
    action()
    return undefined
  } catch (error) {
    if (error instanceof Rejection) return error
    throw error
  }
}

interface Rejected {
  readonly declaration: Node
  readonly diagnostic: Diagnostic
}

const uniqueHint = 'names are unique in the project'

/** Reads spec modules of an open project. `files` are in memory, by path relative to the root. */
export function readProject(project: SpecProject, specs: readonly string[], files: Readonly<Record<string, string>> = {}): Specs {
  const sources = specFiles(project, specs, files)
  const library = standardFiles(project)
  const deep = sources.flatMap((file) => checkNesting(file, project.fileName(file)) ?? [])
  // Types come from all files together, so that nothing is asked about while one is too deep.
  if (deep.length > 0) return { kernels: [], standard: [], layouts: [], diagnostics: deep }
  const declarators = findDeclarators(project)
  const rejected: Rejected[] = []
  const kernels = new Map<string, Kernel>()
  const layouts = new Map<CallExpression, Layout>()

  const layoutOf = (call: CallExpression): Layout => {
    const layout = layouts.get(call) ?? lowerLayout(call)
    const twin = [...layouts].some(([other, { name }]) => other !== call && name === layout.name)
    if (twin) reject('duplicate', call.getArguments()[0] ?? call, `layout ${layout.name} is declared twice`, uniqueHint)
    layouts.set(call, layout)
    return layout
  }
  const lower = (call: CallExpression, file: string, isStandard: boolean) => {
    const { line, column } = call.getSourceFile().getLineAndColumnAtPos(call.getStart())
    const source: SourceSpan = { file, line, column }
    return lowerOp(call, source, { declarators, layoutOf, isStandard })
  }
  const readOp = (call: CallExpression): void => {
    const { kernel, nameNode } = lower(call, project.fileName(call.getSourceFile()), false)
    if (kernels.has(kernel.name)) reject('duplicate', nameNode, `op ${kernel.name} is declared twice`, uniqueHint)
    kernels.set(kernel.name, kernel)
  }
  const read = ({ kind, call, isExported }: Declaration): void => {
    if (!isExported) {
      reject('notExported', call, `this ${kind} is not the value of an exported const`, `write export const name = ${kind}(...)`)
    }
    if (kind === 'layout') layoutOf(call)
    else readOp(call)
  }

  const reexported = new Set(sources.flatMap(exportsOf).map(({ compilerSymbol }) => compilerSymbol))
  const standard: Kernel[] = []
  for (const file of library) {
    for (const { kind, call } of declarationsIn(file, declarators)) {
      if (kind !== 'op') throw new Error(`internal: the standard library declares a ${kind}`)
      const { kernel } = lower(call, `src/std/${file.getBaseName()}`, true)
      const symbol = call.getParentIfKind(SyntaxKind.VariableDeclaration)?.getSymbol()?.compilerSymbol
      if (symbol !== undefined && reexported.has(symbol)) kernels.set(kernel.name, kernel)
      else standard.push(kernel)
    }
  }
  for (const file of sources) {
    for (const declaration of declarationsIn(file, declarators)) {
      const refusal = refusalOf(() =>
        guarded(
          () => read(declaration),
          (failure) => reject('typeScript', declaration.call, failure, failureHint),
        ),
      )
      if (refusal !== undefined)
        rejected.push({ declaration: declaration.call, diagnostic: toDiagnostic(refusal, project.fileName) })
    }
  }
  const distinct = new Map(rejected.map(({ diagnostic }) => [printDiagnostic(diagnostic), diagnostic]))
  const ofTypeScript = sources.flatMap((file): Diagnostic[] => {
    let errors: Diagnostic[] = []
    const refusal = refusalOf(() => {
      errors = typeErrors(file, project, rejected)
    })
    return refusal === undefined ? errors : [toDiagnostic(refusal, project.fileName)]
  })
  const diagnostics = [...distinct.values(), ...ofTypeScript]
  const byName = (a: { readonly name: string }, b: { readonly name: string }): number => (a.name < b.name ? -1 : 1)
  return {
    kernels: [...kernels.values()].sort(byName),
    standard,
    layouts: [...layouts.values()].sort(byName),
    diagnostics: diagnostics.sort((a, b) =>
      a.file === b.file ? a.line - b.line || a.column - b.column : a.file < b.file ? -1 : 1,
    ),
  }
}

/** What shipped spec modules declare, of what was asked for. */
export type Shipped = Pick<Specs, 'kernels' | 'layouts'>

/**
 * Those of the shipped ops that are named, and every shipped layout. Shipped modules are free of errors, and their kernels have the
 * places that they have in the package, so that the text made of them is the shipped text.
 * @param folder of the package
 */
export function readShipped(opened: SpecProject, folder: string, names: ReadonlySet<string>): Shipped {
  const files = opened.project.addSourceFilesAtPaths(join(folder, 'specs', '**', '*.ts'))
  const declarators = findDeclarators(opened)
  const layouts = new Map<CallExpression, Layout>()
  const layoutOf = (call: CallExpression): Layout => {
    const layout = layouts.get(call) ?? lowerLayout(call)
    layouts.set(call, layout)
    return layout
  }
  const kernels: Kernel[] = []
  for (const file of files) {
    for (const { kind, call } of declarationsIn(file, declarators)) {
      if (kind === 'layout') layoutOf(call)
      const [name] = call.getArguments()
      if (kind !== 'op' || !Node.isStringLiteral(name) || !names.has(name.getLiteralValue())) continue
      const { line, column } = file.getLineAndColumnAtPos(call.getStart())
      const source = { file: relative(folder, file.getFilePath()).replaceAll('\\', '/'), line, column }
      kernels.push(lowerOp(call, source, { declarators, layoutOf, isStandard: false }).kernel)
    }
  }
  return { kernels, layouts: [...layouts.values()] }
}

/** Reads spec modules. @throws usage `frontend.no_specs`, `frontend.tsconfig` or `frontend.heddle` if there is nothing to read. */
export const readSpecs = ({ root, specs, tsconfig, files }: ReadOptions): Specs =>
  readProject(openProject(root, tsconfig), specs, files)

/** Reads spec modules that must be free of errors. @throws usage `frontend.rejected` whose message holds every diagnostic. */
export const readSpecsOrThrow = ({ root, specs, tsconfig, files }: ReadOptions): Omit<Specs, 'diagnostics'> =>
  readProjectOrThrow(openProject(root, tsconfig), specs, files)

/** The same of an open project. @throws usage `frontend.rejected` */
export function readProjectOrThrow(...reading: Parameters<typeof readProject>): Omit<Specs, 'diagnostics'> {
  const { diagnostics, ...read } = readProject(...reading)
  if (diagnostics.length > 0) {
    const count = diagnostics.length === 1 ? '1 error' : `${diagnostics.length} errors`
    throw usageError('frontend.rejected', `${count} in the specs\n\n${diagnostics.map(printDiagnostic).join('\n\n')}`, {
      places: diagnostics.map(({ file, line, column, code, message }) => ({ file, line, column, code, message })),
    })
  }
  return read
}
