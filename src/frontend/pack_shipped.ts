/**
 * `npm run memo`: writes the declarations that ship into `dist`, for a package that is about to be packed or tested. The specs are read as those of
 * the package's own project, from the cache if nothing has changed, and `heddle gen` after it finds them there.
 */
import { writeFileSync } from 'node:fs'
import { rejectedSpecs } from '../errors.js'
import { shippedOf } from './cache/declared.js'
import { packedShipped, shippedMemo } from './cache/shipped.js'
import { printDiagnostic } from './diagnostics/reject.js'
import { openProject } from './project/project.js'
import { readModules } from './read/cached.js'

/** Folder of the package: that of npm's scripts. */
const folder = process.cwd()
const { files, standard, diagnostics } = readModules(openProject(folder), ['specs'])
if (diagnostics.length > 0) throw rejectedSpecs(diagnostics.map((each) => ({ text: printDiagnostic(each), place: each })))
writeFileSync(shippedMemo(folder), packedShipped(folder, shippedOf(files, standard)))
