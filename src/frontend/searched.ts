/**
 * The front end's interface for verbs: the declarations of a project, and the shipped ones after them. TypeScript's compiler is loaded only
 * if something has changed since the last read.
 */
import { type Declared, partOf } from './cache/declared.js'
import { knownSpecs } from './cache/known.js'

export { filesRead } from './cache/known.js'
export { type Bodies, readBodies } from './run/bodies.js'
export { readSuites } from './run/suites.js'
export { readSearched, type SearchedSpecs, type SearchOptions, searchDeclarations } from './search.js'

/** Specs of a project that must be free of errors. @param only ops of these names; all others are left out. @throws usage `frontend.rejected` */
export async function readDeclared(root: string, specs = 'specs', only?: ReadonlySet<string>): Promise<Declared> {
  const known = knownSpecs(root, specs)
  if (known !== undefined) return only === undefined ? known : partOf(known, only)
  const { readSpecsOrThrow } = await import('./read/read.js')
  return readSpecsOrThrow({ root, specs: [specs], ...(only === undefined ? {} : { only }) })
}
