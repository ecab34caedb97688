/**
 * The scope of a factory: while an op that a function makes is read, the function's parameters stand for the arguments of the call. Reading is
 * synchronous, so that one place holds it, and no pass over a signature or a body has to hand it on.
 */
import type { Node, Symbol as TsSymbol, ts } from 'ts-morph'

export interface FactoryScope {
  /** What is written for each parameter. */
  readonly given: ReadonlyMap<ts.Symbol, Node>
  /** The functions that take part, whose constants count as those of a module do. */
  readonly factories: ReadonlySet<Node>
}

export const noFactory: FactoryScope = { given: new Map(), factories: new Set() }

let current = noFactory

/** Runs an action while parameters stand for what `scope` says. */
export function inFactory<T>(scope: FactoryScope, action: () => T): T {
  const before = current
  current = scope
  try {
    return action()
  } finally {
    current = before
  }
}

/** What is written for a parameter of the function that makes what is being read; undefined for any other symbol. */
export const givenFor = (symbol: TsSymbol | undefined): Node | undefined =>
  symbol === undefined ? undefined : current.given.get(symbol.compilerSymbol)

/** True if a block is that of a function which makes what is being read. */
export const isFactoryBlock = (block: Node | undefined): boolean => {
  const owner = block?.getParent()
  return owner !== undefined && current.factories.has(owner)
}
