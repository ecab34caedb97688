/**
 * Reads chosen modules of a project: the declarations of each, and its relations to others, so that cached results of unchanged modules
 * can be combined with newly read ones (cache/reading.ts).
 */
import { type CallExpression, Node, type SourceFile, SyntaxKind, ts } from 'ts-morph'
import type { SourceSpan } from '../ir/kernel.js'
import type { Layout } from '../ir/layout.js'
import type { FileRead, StandardRead } from './cache/declared.js'
import { type Declaration, declarationsIn, exportsOf, madeIn, nameOf, whileReading } from './declared.js'
import { type Diagnostic, locate, printDiagnostic, Rejection, reject, toDiagnostic } from './diagnostics.js'
import { otherFunctions, unlistedHint } from './hints.js'
import { lowerLayout } from './layouts.js'
import { checkNesting } from './nesting.js'
import { lowerOp } from './ops.js'
import { failureHint, findDeclarators, guarded, type SpecProject, standardFiles } from './project.js'
import { Refused } from './refusals.js'

/** TypeScript's error codes for a missing module. */
const noModule: ReadonlySet<number> = new Set([2307, 2792])

/** TypeScript's error codes for a value of another type, such as a string outside of a union. */
const noSuchText: ReadonlySet<number> = new Set([2322, 2820])

/** Hint for a missing `heddle` package, and for a name that it does not export. */
function missingHint(message: string): string | undefined {
  if (/^Cannot find module 'heddle'/.test(message)) return 'install it beside the specs: npm install heddle'
  const [, name = ''] = /^Module '"heddle"' has no exported member (?:named )?'(\w+)'/.exec(message) ?? []
  const written = Object.hasOwn(otherFunctions, name) ? otherFunctions[name] : undefined
  return written === undefined ? undefined : `write ${written}`
}

/** Syntax errors of a file: with any, no other errors can be found in it. */
const syntaxErrors = (file: SourceFile, { project }: SpecProject): readonly ts.Diagnostic[] =>
  guarded(
    () => project.getProgram().compilerObject.getSyntacticDiagnostics(file.compilerNode),
    () => [],
  )

/** TypeScript's own errors in a file, except those that the front end has already reported. */
function typeErrors(file: SourceFile, opened: SpecProject, refused: readonly Rejected[]): Diagnostic[] {
  const { project, fileName } = opened
  const check = (): readonly ts.Diagnostic[] =>
    guarded(
      () => project.getProgram().compilerObject.getSemanticDiagnostics(file.compilerNode),
      (failure) => {
        // A refusal in the file is also what TypeScript failed on.
        if (!refused.some(({ declaration }) => declaration.getSourceFile() === file))
          reject('typeScript', file, failure, failureHint)
        return []
      },
    )
  const syntax = syntaxErrors(file, opened)
  const found = syntax.length > 0 ? syntax : check()
  // Imports from a missing module have no types; TypeScript would report that again at every use.
  const absent = found.filter(({ code }) => noModule.has(code))
  return (absent.length > 0 ? absent : found).flatMap(({ start = 0, length = 1, code, messageText }): Diagnostic[] => {
    const place = locate(file, start, length)
    const isCovered = refused.some(
      ({ declaration, diagnostic }) =>
        (declaration.getSourceFile() === file && declaration.getPos() <= start && start < declaration.getEnd()) ||
        (diagnostic.file === fileName(file) && diagnostic.line === place.line),
    )
    const message = ts.flattenDiagnosticMessageText(messageText, '\n')
    const hint = missingHint(message) ?? (noSuchText.has(code) ? unlistedHint(file.getDescendantAtPos(start)) : undefined)
    return isCovered
      ? []
      : [{ code: `TS${code}`, message, file: fileName(file), ...place, ...(hint === undefined ? {} : { hint }) }]
  })
}

/** The refusals that an action throws; empty if it succeeds. */
export function refusalsOf(action: () => void): readonly Rejection[] {
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

interface ReadFiles {
  /** The modules that were read now, by path relative to the root. */
  readonly files: ReadonlyMap<string, FileRead>
  readonly standard: readonly StandardRead[]
  readonly diagnostics: readonly Diagnostic[]
}

const placeOfConstant = (node: Node | undefined): string | undefined =>
  Node.isVariableDeclaration(node) ? `${node.getSourceFile().getBaseName()} ${node.getName()}` : undefined

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
  const library = only === undefined && !alone ? standardFiles(project) : []
  const deep = sources.flatMap((file) => checkNesting(file, project.fileName(file)) ?? [])
  // Types come from all files together, so nothing is checked while one is too deep.
  if (deep.length > 0) return { files: new Map(), standard: [], diagnostics: deep }
  const declarators = findDeclarators(project)
  const rejected: Rejected[] = []
  const others = [...(known?.files.values() ?? [])]
  const names = new Set(others.flatMap(({ kernels }) => kernels.map(({ name }) => name)))
  const layouts = new Map(others.flatMap((read) => [...read.layouts]))
  const reads = new Map<SourceFile, FileRead>()
  const readOf = (file: SourceFile): FileRead => {
    const made = reads.get(file) ?? { kernels: [], layouts: new Map(), reexported: [], returned: new Set(), uncalled: [] }
    reads.set(file, made)
    return made
  }
  let current: FileRead | undefined

  const idOf = (call: CallExpression): string => `${project.fileName(call.getSourceFile())} ${call.getStart()}`
  const layoutOf = (call: CallExpression): Layout => {
    const id = idOf(call)
    const layout = layouts.get(id) ?? lowerLayout(call)
    const twin = [...layouts].some(([other, { name }]) => other !== id && name === layout.name)
    if (twin) reject('duplicate', call.getArguments()[0] ?? call, `layout ${layout.name} is declared twice`, uniqueHint)
    layouts.set(id, layout)
    current?.layouts.set(id, layout)
    return layout
  }
  const ofLibrary = new Set(library)
  const placeOf = (node: Node): SourceSpan => {
    const file = node.getSourceFile()
    const { line, column } = file.getLineAndColumnAtPos(node.getStart())
    return { file: ofLibrary.has(file) ? `src/std/${file.getBaseName()}` : project.fileName(file), line, column }
  }
  const readOp = ({ call, made }: Declaration): void => {
    const { kernel, nameNode } = lowerOp(call, placeOf(made?.at ?? call), {
      declarators,
      layoutOf,
      isStandard: false,
      spanOf: placeOf,
    })
    if (names.has(kernel.name)) reject('duplicate', nameNode, `op ${kernel.name} is declared twice`, uniqueHint)
    names.add(kernel.name)
    current?.kernels.push(kernel)
  }
  const returned = new Set<string>(others.flatMap((read) => [...read.returned]))
  const refusedFactories = new Set<Node>()
  const read = (declaration: Declaration): void => {
    const { kind, call, isExported } = declaration
    // Ops that functions return are read where these are called.
    if (!isExported && returned.has(idOf(call))) {
      current?.uncalled.push(idOf(call))
      return
    }
    if (!isExported) {
      const around = call.getFirstAncestor(isFunctionLike)
      // The error of the function was reported where it is called.
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

  const constants = new Set<string>()
  const standard: StandardRead[] = [...(known?.standard ?? [])]
  const isWanted = (declaration: Declaration): boolean =>
    only === undefined || (declaration.kind === 'op' && only.has(nameOf(declaration)))
  for (const file of known === undefined ? library : []) {
    for (const { kind, call } of declarationsIn(file, declarators)) {
      if (kind !== 'op') throw new Error(`internal: the standard library declares a ${kind}`)
      const { kernel } = lowerOp(call, placeOf(call), { declarators, layoutOf, isStandard: true, spanOf: placeOf })
      standard.push({ constant: placeOfConstant(call.getParent()), kernel })
    }
  }
  for (const { constant } of standard) if (constant !== undefined) constants.add(constant)
  const made = new Map(sources.map((file) => [file, madeIn(file, declarators, refuse, refusedFactories)]))
  for (const [file, declarations] of made) {
    for (const { call } of declarations) {
      returned.add(idOf(call))
      readOf(file).returned.add(idOf(call))
    }
  }
  const seen = new Set<SourceFile>()
  for (const file of sources) {
    current = readOf(file)
    for (const symbol of exportsOf(file)) {
      const declared = symbol.getValueDeclaration()
      const constant = placeOfConstant(declared)
      const isStandard = declared !== undefined && library.includes(declared.getSourceFile())
      if (isStandard && constant !== undefined && constants.has(constant)) current.reexported.push(constant)
    }
    for (const declaration of [...declarationsIn(file, declarators), ...(made.get(file) ?? [])].filter(isWanted)) {
      seen.add(file)
      refuse(declaration.made?.at ?? declaration.call, () => read(declaration))
    }
  }
  const unreadable = new Set(sources.filter((file) => syntaxErrors(file, project).length > 0))
  const readable = rejected.filter(({ declaration }) => !unreadable.has(declaration.getSourceFile()))
  const distinct = new Map(readable.map(({ diagnostic }) => [printDiagnostic(diagnostic), diagnostic]))
  const ofTypeScript = sources.flatMap((file): Diagnostic[] => {
    if (alone || (only !== undefined && !seen.has(file))) return []
    let errors: Diagnostic[] = []
    const refusals = refusalsOf(() => {
      errors = typeErrors(file, project, readable)
    })
    return [...errors, ...refusals.map((refusal) => toDiagnostic(refusal, project.fileName))]
  })
  const diagnostics = [...distinct.values(), ...ofTypeScript]
  return {
    files: new Map([...reads].map(([file, each]) => [project.fileName(file), each])),
    standard,
    diagnostics: diagnostics.sort((a, b) =>
      a.file === b.file ? a.line - b.line || a.column - b.column : a.file < b.file ? -1 : 1,
    ),
  }
}
