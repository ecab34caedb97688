/**
 * Reads chosen modules of a project: the declarations of each, and its relations to others, so that cached results of unchanged modules
 * can be combined with newly read ones (cached.ts).
 */
import { type CallExpression, Node, type SourceFile, SyntaxKind } from 'ts-morph'
import type { SourceSpan } from '../../ir/kernel.js'
import type { Layout } from '../../ir/layout.js'
import type { FileRead, StandardRead } from '../cache/declared.js'
import { isPackage, knownShipped } from '../cache/shipped.js'
import { checkNesting } from '../diagnostics/nesting.js'
import { refusalsOf } from '../diagnostics/refusals.js'
import { type Diagnostic, printDiagnostic, reject, toDiagnostic } from '../diagnostics/reject.js'
import { lowerLayout } from '../lower/layouts.js'
import { lowerOp } from '../lower/ops.js'
import { failureHint, findDeclarators, guarded, packageOf, type SpecProject, standardFiles } from '../project/project.js'
import { type Rejected, syntaxErrors, typeErrors } from '../project/type_errors.js'
import type { SignatureContext } from '../signature/signature.js'
import type { Declarators } from '../static/literals.js'
import { type Declaration, declarationsIn, exportsOf, madeIn, nameOf, whileReading } from './declared.js'

const isFunctionLike = (node: Node): boolean => Node.isArrowFunction(node) || Node.isFunctionDeclaration(node)

/** Hint for an op that no exported const holds, by its surrounding syntax. */
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

/** Cached reads of a project's other modules. */
interface KnownReads {
  readonly files: ReadonlyMap<string, FileRead>
  readonly standard: readonly StandardRead[]
}

export interface ReadFiles {
  /** The modules that were read, by path: the absolute one of a cached read, else relative to the root. */
  readonly files: ReadonlyMap<string, FileRead>
  readonly standard: readonly StandardRead[]
  readonly diagnostics: readonly Diagnostic[]
}

const placeOfConstant = (node: Node | undefined): string | undefined =>
  Node.isVariableDeclaration(node) ? `${node.getSourceFile().getBaseName()} ${node.getName()}` : undefined

/** State of one read: its inputs, and the declarations found so far. */
interface Reading {
  readonly project: SpecProject
  readonly declarators: Declarators
  readonly library: ReadonlySet<SourceFile>
  /** Names of all ops, also of modules that are not read now. */
  readonly names: Set<string>
  /** Layouts by the location of their declaration. */
  readonly layouts: Map<string, Layout>
  /** Locations of the `op(...)` that factories return. */
  readonly returned: Set<string>
  readonly refusedFactories: Set<Node>
  readonly reads: Map<SourceFile, FileRead>
  readonly rejected: Rejected[]
  /** The module that is being read. */
  current?: FileRead
}

function readOf({ reads }: Reading, file: SourceFile): FileRead {
  const made = reads.get(file) ?? { kernels: [], layouts: new Map(), reexported: [], returned: new Set(), uncalled: [] }
  reads.set(file, made)
  return made
}

const idOf = ({ project }: Reading, call: CallExpression): string =>
  `${project.fileName(call.getSourceFile())} ${call.getStart()}`

function layoutOf(reading: Reading, call: CallExpression): Layout {
  const { layouts, current } = reading
  const id = idOf(reading, call)
  const layout = layouts.get(id) ?? lowerLayout(call)
  const twin = [...layouts].some(([other, { name }]) => other !== id && name === layout.name)
  if (twin) reject('duplicate', call.getArguments()[0] ?? call, `layout ${layout.name} is declared twice`, uniqueHint)
  layouts.set(id, layout)
  current?.layouts.set(id, layout)
  return layout
}

function placeOf({ project, library }: Reading, node: Node): SourceSpan {
  const file = node.getSourceFile()
  const { line, column } = file.getLineAndColumnAtPos(node.getStart())
  return { file: library.has(file) ? `src/std/${file.getBaseName()}` : project.fileName(file), line, column }
}

const contextOf = (reading: Reading, isStandard: boolean): SignatureContext => ({
  declarators: reading.declarators,
  layoutOf: (call) => layoutOf(reading, call),
  isStandard,
  spanOf: (node) => placeOf(reading, node),
})

function readOp(reading: Reading, { call, made }: Declaration): void {
  const { kernel, nameNode } = lowerOp(call, placeOf(reading, made?.at ?? call), contextOf(reading, false))
  if (reading.names.has(kernel.name)) reject('duplicate', nameNode, `op ${kernel.name} is declared twice`, uniqueHint)
  reading.names.add(kernel.name)
  reading.current?.kernels.push(kernel)
}

function readDeclaration(reading: Reading, declaration: Declaration): void {
  const { kind, call, isExported } = declaration
  // Ops that functions return are read where these are called.
  if (!isExported && reading.returned.has(idOf(reading, call))) {
    reading.current?.uncalled.push(idOf(reading, call))
    return
  }
  if (!isExported) {
    const around = call.getFirstAncestor(isFunctionLike)
    // The error of the function was reported where it is called.
    if (around !== undefined && reading.refusedFactories.has(around)) return
    const hint = unexportedHint(kind, call, around)
    reject('notExported', call, `this ${kind} is not the value of an exported const`, hint)
  }
  if (kind === 'layout') layoutOf(reading, call)
  else
    whileReading(
      declaration,
      (node) => placeOf(reading, node),
      () => readOp(reading, declaration),
    )
}

/** Runs an action and records its refusals. */
function attempt({ project, rejected }: Reading, node: Node, action: () => void): void {
  const refusals = refusalsOf(() => guarded(action, (failure) => reject('typeScript', node, failure, failureHint)))
  for (const refusal of refusals) rejected.push({ declaration: node, diagnostic: toDiagnostic(refusal, project.fileName) })
}

/** The standard library as it ships; undefined if it has to be read, as in the package itself. */
function knownLibrary(opened: SpecProject): readonly StandardRead[] | undefined {
  const folder = packageOf(opened)
  return folder === undefined || isPackage(opened.root, folder) ? undefined : knownShipped(folder)?.standard
}

/** Reads the modules of the standard library. */
const readLibrary = (reading: Reading): readonly StandardRead[] =>
  [...reading.library].flatMap((file) =>
    declarationsIn(file, reading.declarators).map(({ kind, call }): StandardRead => {
      if (kind !== 'op') throw new Error(`internal: the standard library declares a ${kind}`)
      const { kernel } = lowerOp(call, placeOf(reading, call), contextOf(reading, true))
      return { constant: placeOfConstant(call.getParent()), kernel }
    }),
  )

/** Finds the ops that factory calls create in each module, and records the locations of the `op(...)` that the factories return. */
function findMade(reading: Reading, sources: readonly SourceFile[]): ReadonlyMap<SourceFile, readonly Declaration[]> {
  const refuse = (node: Node, action: () => void): void => attempt(reading, node, action)
  const made = new Map(
    sources.map((file) => [file, madeIn(file, reading.declarators, refuse, reading.refusedFactories)] as const),
  )
  for (const [file, declarations] of made) {
    for (const { call } of declarations) {
      reading.returned.add(idOf(reading, call))
      readOf(reading, file).returned.add(idOf(reading, call))
    }
  }
  return made
}

/** Exported constants of a module that are ops of the standard library. */
function reexportsOf({ library }: Reading, file: SourceFile, standard: readonly StandardRead[]): readonly string[] {
  const constants = new Set(standard.map(({ constant }) => constant))
  return exportsOf(file).flatMap((symbol) => {
    const declared = symbol.getValueDeclaration()
    const constant = placeOfConstant(declared)
    const isStandard = declared !== undefined && library.has(declared.getSourceFile())
    return isStandard && constant !== undefined && constants.has(constant) ? [constant] : []
  })
}

/** All diagnostics of a read, sorted by location. @param typed modules whose TypeScript errors count */
function diagnosticsOf(
  { project, rejected }: Reading,
  sources: readonly SourceFile[],
  typed: readonly SourceFile[],
): readonly Diagnostic[] {
  const unreadable = new Set(sources.filter((file) => syntaxErrors(file, project).length > 0))
  const readable = rejected.filter(({ declaration }) => !unreadable.has(declaration.getSourceFile()))
  const distinct = new Map(readable.map(({ diagnostic }) => [printDiagnostic(diagnostic), diagnostic]))
  const ofTypeScript = typed.flatMap((file): Diagnostic[] => {
    let errors: Diagnostic[] = []
    const refusals = refusalsOf(() => {
      errors = typeErrors(file, project, readable)
    })
    return [...errors, ...refusals.map((refusal) => toDiagnostic(refusal, project.fileName))]
  })
  return [...distinct.values(), ...ofTypeScript].sort((a, b) =>
    a.file === b.file ? a.line - b.line || a.column - b.column : a.file < b.file ? -1 : 1,
  )
}

/**
 * Reads the declarations of modules.
 * @param given `only` as in `ReadOptions`; `known`: reads of all other modules and of the standard library; `alone`: skips the
 *   library and TypeScript's errors
 */
export function readFiles(
  project: SpecProject,
  sources: readonly SourceFile[],
  {
    only,
    known,
    alone = false,
  }: { readonly only?: ReadonlySet<string>; readonly known?: KnownReads; readonly alone?: boolean } = {},
): ReadFiles {
  const library = new Set(only === undefined && !alone ? standardFiles(project) : [])
  const deep = sources.flatMap((file) => checkNesting(file, project.fileName(file)) ?? [])
  // Types come from all files together, so nothing is checked while one is too deep.
  if (deep.length > 0) return { files: new Map(), standard: [], diagnostics: deep }
  const others = [...(known?.files.values() ?? [])]
  const reading: Reading = {
    project,
    declarators: findDeclarators(project),
    library,
    names: new Set(others.flatMap(({ kernels }) => kernels.map(({ name }) => name))),
    layouts: new Map(others.flatMap((read) => [...read.layouts])),
    returned: new Set(others.flatMap((read) => [...read.returned])),
    refusedFactories: new Set(),
    reads: new Map(),
    rejected: [],
  }
  const isWanted = (declaration: Declaration): boolean =>
    only === undefined || (declaration.kind === 'op' && only.has(nameOf(declaration)))
  const standard = known?.standard ?? (library.size > 0 ? (knownLibrary(project) ?? readLibrary(reading)) : [])
  const made = findMade(reading, sources)
  const seen = new Set<SourceFile>()
  for (const file of sources) {
    const current = readOf(reading, file)
    reading.current = current
    current.reexported.push(...reexportsOf(reading, file, standard))
    for (const declaration of [...declarationsIn(file, reading.declarators), ...(made.get(file) ?? [])].filter(isWanted)) {
      seen.add(file)
      attempt(reading, declaration.made?.at ?? declaration.call, () => readDeclaration(reading, declaration))
    }
  }
  const typed = sources.filter((file) => !alone && (only === undefined || seen.has(file)))
  return {
    files: new Map([...reading.reads].map(([file, each]) => [project.fileName(file), each])),
    standard,
    diagnostics: diagnosticsOf(reading, sources, typed),
  }
}
