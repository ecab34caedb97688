/**
 * Reading spec modules: verified kernels and layouts. Runs first on the road. What it does not understand
 * it refuses, with a located diagnostic; everything later may rely on the IR's rules.
 */
import { join, relative } from 'node:path'
import { type CallExpression, Node, type SourceFile, SyntaxKind, ts } from 'ts-morph'
import { rejectedSpecs } from '../errors.js'
import type { Kernel, SourceSpan } from '../ir/kernel.js'
import type { Layout } from '../ir/layout.js'
import { type Declaration, declarationsIn, exportsOf, madeIn, nameOf, whileReading } from './declared.js'
import { type Diagnostic, locate, printDiagnostic, Rejection, reject, toDiagnostic } from './diagnostics.js'
import { lowerLayout } from './layouts.js'
import { checkNesting } from './nesting.js'
import { lowerOp } from './ops.js'
import { failureHint, findDeclarators, guarded, openProject, type SpecProject, specFiles, standardFiles } from './project.js'
import { Refused } from './refusals.js'

export interface ReadOptions {
  /** The project's folder; paths in diagnostics and kernels are relative to it. */
  readonly root: string
  /** Folders, files or globs under the root. */
  readonly specs: readonly string[]
  /** Defaults to the root's `tsconfig.json`. */
  readonly tsconfig?: string
  /** Further spec modules that exist only in memory: path relative to the root, and text. */
  readonly files?: Readonly<Record<string, string>>
  /** Only ops of these names, and what TypeScript says of the files they are in: for whoever has changed one and waits. */
  readonly only?: ReadonlySet<string>
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

/** The refusals that an action ends with; none where it does not. */
function refusalsOf(action: () => void): readonly Rejection[] {
  try {
    action()
    return []
  } catch (error) {
    if (error instanceof Rejection) return [error]
    if (error instanceof Refused) return error.rejections
    throw error
  }
}

interface Rejected {
  readonly declaration: Node
  readonly diagnostic: Diagnostic
}

const isFunctionLike = (node: Node): boolean => Node.isArrowFunction(node) || Node.isFunctionDeclaration(node)

/** How an op that no exported const holds is written, by what is around it. */
function unexportedHint(kind: string, call: CallExpression, around: Node | undefined): string {
  const isArgument = around !== undefined && Node.isCallExpression(around.getParent())
  const isLooped = call.getFirstAncestor(Node.isIterationStatement) !== undefined
  if (isArgument || isLooped)
    return `a module is read, not run: write export const name = ${kind}(...) for each, or call a function that returns ${kind}(...)`
  if (around !== undefined) return 'export what the function makes: export const name = make(...)'
  if (Node.isPropertyAssignment(call.getParent()))
    return `write export const ${call.getParentIfKindOrThrow(SyntaxKind.PropertyAssignment).getName()} = ${kind}(...), and name it in the object`
  return `write export const name = ${kind}(...)`
}

const uniqueHint = 'names are unique in the project'

/** Reads spec modules of an open project. `files` are in memory, by path relative to the root. */
export function readProject(
  project: SpecProject,
  specs: readonly string[],
  files: Readonly<Record<string, string>> = {},
  only?: ReadonlySet<string>,
): Specs {
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
  const placeOf = (call: CallExpression, file = project.fileName(call.getSourceFile())): SourceSpan => {
    const { line, column } = call.getSourceFile().getLineAndColumnAtPos(call.getStart())
    return { file, line, column }
  }
  const readOp = ({ call, made }: Declaration): void => {
    const { kernel, nameNode } = lowerOp(call, placeOf(made?.at ?? call), { declarators, layoutOf, isStandard: false })
    if (kernels.has(kernel.name)) reject('duplicate', nameNode, `op ${kernel.name} is declared twice`, uniqueHint)
    kernels.set(kernel.name, kernel)
  }
  const returned = new Set<CallExpression>()
  const refusedFactories = new Set<Node>()
  const read = (declaration: Declaration): void => {
    const { kind, call, isExported } = declaration
    // What functions return is read where they are called.
    if (!isExported && returned.has(call)) return
    if (!isExported) {
      const around = call.getFirstAncestor(isFunctionLike)
      // What is wrong with the function was said where it is called.
      if (around !== undefined && refusedFactories.has(around)) return
      const hint = unexportedHint(kind, call, around)
      reject('notExported', call, `this ${kind} is not the value of an exported const`, hint)
    }
    if (kind === 'layout') layoutOf(call)
    else whileReading(declaration, placeOf, () => readOp(declaration))
  }
  const refuse = (node: Node, action: () => void): void => {
    const refusals = refusalsOf(() => guarded(action, (failure) => reject('typeScript', node, failure, failureHint)))
    for (const refusal of refusals) rejected.push({ declaration: node, diagnostic: toDiagnostic(refusal, project.fileName) })
  }

  const reexported = new Set(sources.flatMap(exportsOf).map(({ compilerSymbol }) => compilerSymbol))
  const standard: Kernel[] = []
  const isWanted = (declaration: Declaration): boolean =>
    only === undefined || (declaration.kind === 'op' && only.has(nameOf(declaration)))
  const seen = new Set<SourceFile>()
  for (const file of only === undefined ? library : []) {
    for (const { kind, call } of declarationsIn(file, declarators)) {
      if (kind !== 'op') throw new Error(`internal: the standard library declares a ${kind}`)
      const { kernel } = lowerOp(call, placeOf(call, `src/std/${file.getBaseName()}`), {
        declarators,
        layoutOf,
        isStandard: true,
      })
      const symbol = call.getParentIfKind(SyntaxKind.VariableDeclaration)?.getSymbol()?.compilerSymbol
      if (symbol !== undefined && reexported.has(symbol)) kernels.set(kernel.name, kernel)
      else standard.push(kernel)
    }
  }
  const made = new Map(sources.map((file) => [file, madeIn(file, declarators, refuse, refusedFactories)]))
  for (const { call } of [...made.values()].flat()) returned.add(call)
  for (const file of sources) {
    for (const declaration of [...declarationsIn(file, declarators), ...(made.get(file) ?? [])].filter(isWanted)) {
      seen.add(file)
      refuse(declaration.made?.at ?? declaration.call, () => read(declaration))
    }
  }
  const distinct = new Map(rejected.map(({ diagnostic }) => [printDiagnostic(diagnostic), diagnostic]))
  const ofTypeScript = sources.flatMap((file): Diagnostic[] => {
    if (only !== undefined && !seen.has(file)) return []
    let errors: Diagnostic[] = []
    const refusals = refusalsOf(() => {
      errors = typeErrors(file, project, rejected)
    })
    return [...errors, ...refusals.map((refusal) => toDiagnostic(refusal, project.fileName))]
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
  const placeOf = (call: CallExpression): SourceSpan => {
    const { line, column } = call.getSourceFile().getLineAndColumnAtPos(call.getStart())
    return { file: relative(folder, call.getSourceFile().getFilePath()).replaceAll('\\', '/'), line, column }
  }
  const ignoring = (_: CallExpression, action: () => void): void => void refusalsOf(action)
  const kernels: Kernel[] = []
  for (const file of files) {
    for (const declaration of [...declarationsIn(file, declarators), ...madeIn(file, declarators, ignoring)]) {
      const { kind, call, made } = declaration
      if (kind === 'layout') layoutOf(call)
      if (kind !== 'op' || !names.has(nameOf(declaration))) continue
      whileReading(declaration, placeOf, () => {
        kernels.push(lowerOp(call, placeOf(made?.at ?? call), { declarators, layoutOf, isStandard: false }).kernel)
      })
    }
  }
  return { kernels, layouts: [...layouts.values()] }
}

/** Reads spec modules. @throws usage `frontend.no_specs`, `frontend.tsconfig` or `frontend.heddle` if there is nothing to read. */
export const readSpecs = ({ root, specs, tsconfig, files, only }: ReadOptions): Specs =>
  readProject(openProject(root, tsconfig), specs, files, only)

/** Reads spec modules that must be free of errors. @throws usage `frontend.rejected` whose message holds every diagnostic. */
export const readSpecsOrThrow = ({ root, specs, tsconfig, files, only }: ReadOptions): Omit<Specs, 'diagnostics'> =>
  readProjectOrThrow(openProject(root, tsconfig), specs, files, only)

/** The same of an open project. @throws usage `frontend.rejected` */
export function readProjectOrThrow(...reading: Parameters<typeof readProject>): Omit<Specs, 'diagnostics'> {
  const { diagnostics, ...read } = readProject(...reading)
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
