/**
 * Jinja as Python renders it, over the parser and the expressions of `@huggingface/jinja`. Its interpreter drops the output of a loop iteration
 * before `break` or `continue`, and prints values as JSON; both are corrected here.
 */
import { Interpreter, parse, tokenize } from '@huggingface/jinja'
import { pythonText, type TemplateValue } from './python_text.js'

// The library's declarations do not resolve from an ES module, so it has no types. Those in use follow.
type Environment = object
interface Node {
  readonly type: string
}
interface Value extends TemplateValue {
  __bool__(): { readonly value: boolean }
}

/** A statement with nested blocks. */
interface Blocks extends Node {
  readonly body?: readonly Node[]
  readonly alternate?: readonly Node[]
  readonly defaultBlock?: readonly Node[]
}
interface If extends Node {
  readonly test: Node
  readonly body: readonly Node[]
  readonly alternate: readonly Node[]
}
interface For extends Node {
  readonly body: readonly Node[]
}
interface Binary extends Node {
  readonly operator: { readonly value: string }
  readonly left: Node
  readonly right: Node
}
interface Filter extends Node {
  readonly operand: Node
  readonly filter: Node & { readonly value?: string; readonly callee?: { readonly value?: string } }
}

/** An expression whose value is output. */
class Written {
  readonly type = 'Written'
  readonly value: Node
  constructor(value: Node) {
    this.value = value
  }
}

/** Body of a loop, in one iteration. */
class Round {
  readonly type = 'Round'
  readonly body: readonly Node[]
  isOver = false
  constructor(body: readonly Node[]) {
    this.body = body
  }
}

/** End of an iteration, thrown to the loop, with the iteration's output. */
class RoundEnd extends Error {
  readonly isLast: boolean
  text = ''
  constructor(isLast: boolean) {
    super('break or continue outside of a loop')
    this.isLast = isLast
  }
}

const statements = new Set([
  ...['Program', 'Set', 'If', 'For', 'Macro', 'CallStatement', 'FilterStatement', 'Break', 'Continue', 'Comment'],
])

const isIf = (node: Node): node is If => node.type === 'If'
const isFor = (node: Node): node is For => node.type === 'For'
const isConcatenation = (node: Node): node is Binary =>
  node.type === 'BinaryExpression' && (node as Partial<Binary>).operator?.value === '~'
const isFilter = (node: Node): node is Filter => node.type === 'FilterExpression'

const filterName = ({ filter }: Filter): string | undefined => filter.value ?? filter.callee?.value

/** Marks the output expressions in the blocks of a statement. */
function marked<N extends Blocks>(node: N): N {
  const block = (nodes: readonly Node[] | undefined): readonly Node[] | undefined =>
    nodes?.map((each) => (statements.has(each.type) ? marked(each) : new Written(each)))
  const { body, alternate, defaultBlock } = node
  return Object.assign(node, {
    ...(Array.isArray(body) && { body: block(body) }),
    ...(Array.isArray(alternate) && { alternate: block(alternate) }),
    ...(Array.isArray(defaultBlock) && { defaultBlock: block(defaultBlock) }),
  })
}

class PythonInterpreter extends Interpreter {
  // The base class and its constructor have no types.
  constructor(environment: Environment) {
    super(environment)
  }

  evaluate(node: Node | undefined, environment: Environment): Value {
    if (node === undefined) return super.evaluate(node, environment)
    if (node instanceof Written) return this.#string(pythonText(this.evaluate(node.value, environment)), environment)
    if (node instanceof Round) return this.#round(node, environment)
    if (node.type === 'Break' || node.type === 'Continue') throw new RoundEnd(node.type === 'Break')
    if (isIf(node)) {
      const holds = this.evaluate(node.test, environment).__bool__().value
      return this.#block(holds ? node.body : node.alternate, environment)
    }
    if (isFor(node)) {
      const loop = { ...node, body: [new Round(node.body)] }
      return super.evaluate(loop, environment)
    }
    if (isConcatenation(node)) {
      const [left, right] = [this.evaluate(node.left, environment), this.evaluate(node.right, environment)]
      return this.#string(pythonText(left) + pythonText(right), environment)
    }
    if (isFilter(node) && filterName(node) === 'string')
      return this.#string(pythonText(this.evaluate(node.operand, environment)), environment)
    if (isFilter(node) && filterName(node) === 'join') return this.#join(node, environment)
    return super.evaluate(node, environment)
  }

  #string(value: string, environment: Environment): Value {
    const literal = { type: 'StringLiteral', value }
    return super.evaluate(literal, environment)
  }

  #block(nodes: readonly Node[], environment: Environment): Value {
    let text = ''
    for (const node of nodes) {
      try {
        const value = this.evaluate(node, environment)
        if (value.type !== 'NullValue' && value.type !== 'UndefinedValue') text += String(value.value)
      } catch (error) {
        if (error instanceof RoundEnd) error.text = text + error.text
        throw error
      }
    }
    return this.#string(text, environment)
  }

  #round(round: Round, environment: Environment): Value {
    if (round.isOver) return this.#string('', environment)
    try {
      return this.#block(round.body, environment)
    } catch (error) {
      if (!(error instanceof RoundEnd)) throw error
      round.isOver = error.isLast
      return this.#string(error.text, environment)
    }
  }

  /** Items are converted to strings as in output. */
  #join(node: Filter, environment: Environment): Value {
    const items: unknown = this.evaluate(node.operand, environment).value
    if (!Array.isArray(items)) return super.evaluate(node, environment)
    const value = items.map((item: Value) => ({ type: 'StringLiteral', value: pythonText(item) }))
    const joined = { ...node, operand: { type: 'ArrayLiteral', value } }
    return super.evaluate(joined, environment)
  }
}

/** Parses a template to a tree. @throws what the parser throws for an invalid template */
export const parseTemplate = (source: string): Node => marked(parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true })))

/** Text of a template. @throws what its expressions throw */
export function renderTemplate(program: Node, environment: Environment): string {
  const { value } = new PythonInterpreter(environment).evaluate(program, environment)
  if (typeof value === 'string') return value
  throw new Error(`the result is of type ${typeof value}`)
}
