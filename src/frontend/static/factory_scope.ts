/**
 * The scope of a factory: while an op of a factory is read, the function's parameters stand for the arguments of the call. Reading is synchronous, so
 * that one module variable holds the scope, and no pass over a signature or a body has to pass it on.
 */
import type { Node, Symbol as TsSymbol, ts } from 'ts-morph'

export interface FactoryScope {
  /** Argument of each parameter. */
  readonly given: ReadonlyMap<ts.Symbol, Node>
  /** The factories involved; their constants count as module-level constants. */
  readonly factories: ReadonlySet<Node>
}

export const noFactory: FactoryScope = { given: new Map(), factories: new Set() }

let current = noFactory

/** Runs an action with the parameters of `scope` bound. */
export function inFactory<T>(scope: FactoryScope, action: () => T): T {
  const before = current
  current = scope
  try {
    return action()
  } finally {
    current = before
  }
}

/** Argument for a parameter of a current factory; undefined for any other symbol. */
export const givenFor = (symbol: TsSymbol | undefined): Node | undefined =>
  symbol === undefined ? undefined : current.given.get(symbol.compilerSymbol)

/** True if a block is the body of a current factory. */
export const isFactoryBlock = (block: Node | undefined): boolean => {
  const owner = block?.getParent()
  return owner !== undefined && current.factories.has(owner)
}
