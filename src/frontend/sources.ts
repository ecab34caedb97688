/**
 * The declarations of source files, each read by itself: kernels and layouts of those that can be read, and what is refused of the others.
 * Names are unique among the files that are read together.
 */
import { type CallExpression, Node, type SourceFile, SyntaxKind } from 'ts-morph'
import type { Kernel, SourceSpan } from '../ir/kernel.js'
import type { Layout } from '../ir/layout.js'
import { type Declaration, declarationsIn, exportsOf, madeIn, nameOf, whileReading } from './declared.js'
import { type Diagnostic, Rejection, reject, toDiagnostic } from './diagnostics.js'
import { lowerLayout } from './layouts.js'
import { lowerOp } from './ops.js'
import { failureHint, findDeclarators, guarded, type SpecProject } from './project.js'
import { Refused } from './refusals.js'

/** The refusals that an action ends with; none where it does not. */
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

export interface Rejected {
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

/** What was read of source files. */
interface Sources {
  readonly kernels: ReadonlyMap<string, Kernel>
  readonly standard: readonly Kernel[]
  readonly layouts: ReadonlyMap<CallExpression, Layout>
  readonly rejected: readonly Rejected[]
  /** Files with a declaration that was asked for. */
  readonly seen: ReadonlySet<SourceFile>
}

/**
 * @param library modules of the standard library, free of errors
 * @param only names of the ops that are asked for; all where undefined
 */
export function readSources(
  project: SpecProject,
  sources: readonly SourceFile[],
  library: readonly SourceFile[],
  only?: ReadonlySet<string>,
): Sources {
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
  for (const file of library) {
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
  return { kernels, standard, layouts, rejected, seen }
}
