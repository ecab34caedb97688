/** Cached declarations of spec modules, and their combination: plain data, usable without loading TypeScript. */
import type { Kernel } from '../../ir/kernel.js'
import type { Layout } from '../../ir/layout.js'

/** Verified kernels and layouts of a project. */
export interface Declared {
  /** Sorted by name. */
  readonly kernels: readonly Kernel[]
  /** Kernels of the standard library that no spec module re-exports, for use by graphs and plans. */
  readonly standard: readonly Kernel[]
  readonly layouts: readonly Layout[]
}

/** Declarations of one module without errors, and its relations to others: everything that is cached of it. */
export interface FileRead {
  readonly kernels: Kernel[]
  /** Layouts that it declares or uses, by the location of their declaration. */
  readonly layouts: Map<string, Layout>
  /** Exported constants of the standard library, as `placeOfConstant` names them. */
  readonly reexported: string[]
  /** Ops that factories return, declared by calls in this module. */
  readonly returned: Set<string>
  /** Ops written here in a factory that other modules call. */
  readonly uncalled: string[]
}

/** A kernel of the standard library, with the constant that holds its op. */
export interface StandardRead {
  readonly constant: string | undefined
  readonly kernel: Kernel
}

/** The declarations that ship, as plain data: those of the package's spec modules, and those of its standard library. */
export interface ShippedSpecs {
  readonly kernels: readonly Kernel[]
  readonly layouts: readonly Layout[]
  readonly standard: readonly StandardRead[]
}

/** The same of the package's modules, each list sorted by name. */
export const shippedOf = (files: ReadonlyMap<string, FileRead>, standard: readonly StandardRead[]): ShippedSpecs => ({
  kernels: [...files.values()].flatMap(({ kernels }) => kernels).sort(byName),
  layouts: layoutsOf(files),
  standard,
})

/** Combined declarations of modules. */
export function assemble(files: ReadonlyMap<string, FileRead>, standard: readonly StandardRead[]): Declared {
  const reads = [...files.values()]
  const reexported = new Set(reads.flatMap((read) => read.reexported))
  const isOwn = ({ constant }: StandardRead): boolean => constant !== undefined && reexported.has(constant)
  const kernels = [...standard.filter(isOwn).map(({ kernel }) => kernel), ...reads.flatMap((read) => read.kernels)]
  return {
    kernels: kernels.sort(byName),
    standard: standard.filter((each) => !isOwn(each)).map(({ kernel }) => kernel),
    layouts: layoutsOf(files),
  }
}

/** Distinct layouts of modules. */
const layoutsOf = (files: ReadonlyMap<string, FileRead>): Layout[] =>
  [...new Map([...files.values()].flatMap(({ layouts }) => [...layouts])).values()].sort(byName)

/** Ops with the given names, and all layouts. */
export const partOf = ({ kernels, layouts }: Declared, only: ReadonlySet<string>): Declared => ({
  kernels: kernels.filter(({ name }) => only.has(name)),
  standard: [],
  layouts,
})

export const byName = (a: { readonly name: string }, b: { readonly name: string }): number => (a.name < b.name ? -1 : 1)
