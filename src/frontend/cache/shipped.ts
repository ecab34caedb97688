/**
 * The declarations that ship, without reading them: reading takes longer than everything else that a first command in a project does. They depend
 * on the package alone, so that no project needs its own. A packed package has them in `dist/shipped.memo`, which `npm run memo` writes and
 * nothing else; in a checkout, the last read of the package's own specs serves as well. Either is used only if compiler, version and texts are
 * those that it was read from: otherwise the specs are read. The package is trusted with them as with its modules, which are run.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { compilerDigest } from '../../compiler_digest.js'
import { isOff } from '../../memo.js'
import { slashed } from '../../path_names.js'
import { sealed, unsealed } from '../../sealed.js'
import { type ShippedSpecs, shippedOf } from './declared.js'
import { readsOf, typescriptVersion, unchangedTrace } from './known.js'

/** The file of a package, in its folder. */
export const shippedMemo = (folder: string): string => join(folder, 'dist', 'shipped.memo')

/** The declarations that the package in a folder ships; undefined if they have to be read. */
export function knownShipped(folder: string): ShippedSpecs | undefined {
  if (isOff()) return undefined
  const packed = readPacked(folder)
  if (packed !== undefined) return packed
  const trace = unchangedTrace(folder, 'specs')
  return trace === undefined ? undefined : shippedOf(readsOf(trace.modules), trace.standard)
}

function readPacked(folder: string): ShippedSpecs | undefined {
  try {
    return unsealed(keyOf(folder, readersHere()), readFileSync(shippedMemo(folder)))?.value as ShippedSpecs | undefined
  } catch {
    // Missing, or in a format of a later version of V8.
    return undefined
  }
}

/**
 * Contents of a package's memo.
 * @param readers digests of the programs that read the specs
 * @throws DataCloneError for declarations that are not plain data
 */
export const packedShipped = (folder: string, specs: ShippedSpecs, readers = readersHere()): Buffer =>
  sealed(keyOf(folder, readers), specs)

/** Digests of this compiler, which includes the types of the language, and of its TypeScript. */
const readersHere = (): readonly string[] => [compilerDigest(), typescriptVersion()]

/** Digest of everything that the declarations follow from. */
function keyOf(folder: string, readers: readonly string[]): string {
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { readonly version?: unknown }
  const texts = ['specs', 'src/std'].map((part) => textsBelow(join(folder, part)))
  return createHash('sha256')
    .update(JSON.stringify([...readers, version, texts]))
    .digest('base64url')
}

/** Every module below a folder with its text. */
export const textsBelow = (folder: string): readonly (readonly [string, string])[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .sort()
    .map((name) => [slashed(name), readFileSync(join(folder, name), 'utf8')])

/** True if a project is the package itself, whose specs are its own. */
export const isPackage = (root: string, folder: string): boolean => realpathSync(folder) === realpathSync(root)
