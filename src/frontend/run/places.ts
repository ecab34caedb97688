/**
 * Source locations of errors: the statement that declared a plan or a graph or made a node, and in it the key or string in question. Messages are
 * prefixed with the location, the line and a caret, like those of op bodies.
 */
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Node, Project, SourceFile } from 'ts-morph'
import { HeddleError, type Place, type Subject, together, type Written } from '../../errors.js'
import type { GraphDecl } from '../../lang/graph.js'
import type { PlanDecl } from '../../lang/plan.js'
import { frameOf } from '../diagnostics/reject.js'
import { tsMorph } from '../project/typescript.js'
import type { SourceMaps } from './source_maps.js'

interface Declared {
  readonly graphs: Readonly<Record<string, GraphDecl>>
  readonly plans: readonly PlanDecl[]
}

/** A location and the length of the source range that starts there. */
interface Span extends Place {
  readonly length: number
}

export class Places {
  readonly #root: string
  readonly #maps: SourceMaps
  readonly #files = new Map<string, SourceFile | undefined>()
  #project: Project | undefined

  constructor(root: string, maps: SourceMaps) {
    this.#root = root
    this.#maps = maps
  }

  /** The error prefixed with its location, if known: that of its subject, else that of its stack. */
  located(error: unknown, declared: Declared = { graphs: {}, plans: [] }): unknown {
    if (!isRefusal(error)) return error
    // Each of several errors gets its own location.
    if (error.all.length > 0)
      return together(error.all.flatMap((each) => this.located(each, declared)).filter((each) => each instanceof HeddleError))
    if (error.places.length > 0) return error
    const { about = {} } = error
    const places = this.#subject(about, declared)
    const thrown = places.length === 0 ? this.#refined(this.#maps.placeOf(error.stack), about.path) : undefined
    const [place, ...others] = thrown === undefined ? places : [{ what: '', span: thrown }]
    if (place === undefined) return error
    const { file, line, column } = place.span
    const also = others.map(({ what, span }) => `  ${what}: ${span.file}:${span.line}:${span.column}`)
    const message = [`${file}:${line}:${column}: ${error.message}`, ...this.#frame(place.span), ...also].join('\n')
    const details = {
      cause: error,
      places: [{ file, line, column, ...(about.nodes === undefined ? {} : { nodes: about.nodes }) }],
      about,
      ...(error.hint === undefined ? {} : { hint: error.hint }),
    }
    return new HeddleError(error.class, error.code, message, details)
  }

  /** The author's innermost statement in a stack. */
  thrownAt = (stack: string | undefined): { readonly place: Place; readonly frame: string } | undefined => {
    const span = this.#refined(this.#maps.placeOf(stack), undefined)
    return span === undefined ? undefined : { place: span, frame: this.#frame(span).join('\n') }
  }

  /** Locations of an error's subject: the wrong declaration first, then the nodes it names. */
  #subject({ plan, graph, path, nodes = [], written }: Subject, { graphs, plans }: Declared) {
    const found: { readonly what: string; readonly span: Span }[] = []
    const add = (what: string, statement: Written | undefined, inside?: readonly string[]): void => {
      const span = this.#refined(this.#statement(statement), inside)
      if (span !== undefined) found.push({ what, span })
    }
    add('', written)
    const planned = plans.find(({ name, graph: of, schedules = {} }) =>
      plan === undefined
        ? path?.[0] === 'schedules' && Object.hasOwn(schedules, path[1] ?? '')
        : name === plan && (graph === undefined || of === graph),
    )
    if (planned !== undefined) add(`plan ${planned.name}`, planned.written, path)
    const decl = graph !== undefined && Object.hasOwn(graphs, graph) ? graphs[graph] : undefined
    for (const node of new Set(nodes)) if (decl?.written !== undefined) add(`node ${node}`, own(decl.written.nodes, node))
    if (found.length === 0 && decl !== undefined) add(`graph ${graph}`, decl.written?.call, path)
    return found
  }

  /** The author's statement; a package's statement if the author wrote none. */
  #statement(written: Written | undefined): Place | undefined {
    return written === undefined ? undefined : this.#maps.placeOf(written.stack, (path) => !path.includes('node:'))
  }

  /** The key or string at the end of a path in the call at a location: the last part that is found. */
  #refined(place: Place | undefined, path: readonly string[] = []): Span | undefined {
    if (place === undefined) return undefined
    const file = this.#file(place.file)
    const lines = file?.getFullText().split('\n') ?? []
    const line = lines[place.line - 1]
    if (file === undefined || line === undefined) return { ...place, length: 1 }
    const at = lines.slice(0, place.line - 1).reduce((sum, text) => sum + text.length + 1, 0) + place.column - 1
    const { Node } = tsMorph()
    const callee = file.getDescendantAtPos(at)
    const call = callee?.getFirstAncestor(
      (node) =>
        Node.isCallExpression(node) && node.getExpression().getEnd() >= callee.getEnd() && node.getExpression().getPos() <= at,
    )
    let [around, found]: [Node | undefined, Node | undefined] = [call, undefined]
    for (const part of path) {
      const next: Node | undefined = around?.getFirstDescendant((node) => node !== around && isCalled(node, part))
      if (next === undefined) continue
      found = Node.isPropertyAssignment(next) || Node.isShorthandPropertyAssignment(next) ? next.getNameNode() : next
      around = next
    }
    if (found === undefined) return { ...place, length: callee?.getWidth() ?? 1 }
    const { line: foundLine, column } = file.getLineAndColumnAtPos(found.getStart())
    return { file: place.file, line: foundLine, column, length: found.getWidth() }
  }

  #frame({ file: name, line, column, length }: Span): readonly string[] {
    const text = this.#file(name)?.getFullText().split(/\r?\n/)[line - 1]
    return text === undefined ? [] : [frameOf(text, line, column, length)]
  }

  #file(name: string): SourceFile | undefined {
    if (this.#files.has(name)) return this.#files.get(name)
    const path = resolve(this.#root, name)
    // Parsed, not checked: nothing of the project is loaded for it.
    this.#project ??= new (tsMorph().Project)({ useInMemoryFileSystem: true, skipLoadingLibFiles: true })
    const file = existsSync(path)
      ? this.#project.createSourceFile(`/${this.#files.size}.ts`, readFileSync(path, 'utf8'))
      : undefined
    this.#files.set(name, file)
    return file
  }
}

const own = <T>(record: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined

/** True for a property of that name, or a string equal to it. */
function isCalled(node: Node, name: string): boolean {
  const { Node } = tsMorph()
  return Node.isPropertyAssignment(node) || Node.isShorthandPropertyAssignment(node)
    ? (Node.isStringLiteral(node.getNameNode()) ? node.getNameNode().getText().slice(1, -1) : node.getName()) === name
    : (Node.isStringLiteral(node) || Node.isNoSubstitutionTemplateLiteral(node)) && node.getLiteralText() === name
}

/** Refusals of the language come from the project's own copy of it, so they are recognised by name only. */
const isRefusal = (error: unknown): error is HeddleError => error instanceof Error && error.name === 'HeddleError'
