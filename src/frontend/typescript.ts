/**
 * ts-morph, and in it TypeScript's compiler, loaded by whoever needs it first: loading takes as long as everything else that a verb does
 * where no spec has changed.
 */
import { createRequire } from 'node:module'

type Morph = typeof import('ts-morph')

let loaded: Morph | undefined

/** Loads it in the first call. */
export function tsMorph(): Morph {
  loaded ??= createRequire(import.meta.url)('ts-morph') as Morph
  return loaded
}
