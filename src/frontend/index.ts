/** The front end: spec modules in, verified kernels and layouts, graphs and plans out. */

export { codes, type Diagnostic, printDiagnostic } from './diagnostics/reject.js'
export { openProject, type SpecProject } from './project/project.js'
export { type ReadOptions, readProject, readSpecs, readSpecsOrThrow, type Specs } from './read/read.js'
export { type Bodies, readBodies } from './run/bodies.js'
export { type Declarations, readDeclarations } from './run/declarations.js'
export { readSearched, type SearchedSpecs, type SearchOptions, searchDeclarations } from './search.js'
