/**
 * The front end as verbs ask it: what a project declares, and what ships behind it. TypeScript's compiler is loaded where something has
 * changed since it was read last, and not otherwise.
 */
import { type Declared, partOf } from './cache/declared.js'
import { knownSpecs } from './cache/known.js'

export { type Bodies, readBodies } from './run_bodies.js'
export { readSearched, type SearchedSpecs, type SearchOptions, searchDeclarations } from './search.js'

/** Specs of a project that must be free of errors. @param only ops of these names, and nothing of others. @throws usage `frontend.rejected` */
export async function readDeclared(root: string, specs = 'specs', only?: ReadonlySet<string>): Promise<Declared> {
  const known = knownSpecs(root, specs)
  if (known !== undefined) return only === undefined ? known : partOf(known, only)
  const { readSpecsOrThrow } = await import('./read.js')
  return readSpecsOrThrow({ root, specs: [specs], ...(only === undefined ? {} : { only }) })
}
