/** Compilers, the build cache and the libraries they make. */
export { type BundleResult, makeBundle, mebibytes } from './bundle.js'
export { type Compiler, findCmake, findCxx, findNvcc } from './compilers.js'
export { type Installation, installation } from './installation.js'
export { type BuildOptions, type BuildProgress, type BuildResult, buildKernels, libraryState } from './kernels.js'
export { buildNative, type NativeResult } from './native.js'
export { outputs, packageRoot, type Target, targets } from './paths.js'
export { type BuildReport, readBuildReport } from './report.js'
