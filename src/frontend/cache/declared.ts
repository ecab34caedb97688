/** What spec modules declare, as it is kept between runs, and put together: plain data, for whoever needs no TypeScript. */
import type { Kernel } from '../../ir/kernel.js'
import type { Layout } from '../../ir/layout.js'

/** Verified kernels and layouts of a project. */
export interface Declared {
  /** In the order of their names. */
  readonly kernels: readonly Kernel[]
  /** Those of the standard library that no spec module re-exports: for what graphs and plans bring in. */
  readonly standard: readonly Kernel[]
  readonly layouts: readonly Layout[]
}

/** What one module declares, and what it has to do with others: all that is kept of it where it has no errors. */
export interface FileRead {
  readonly kernels: Kernel[]
  /** Layouts that it declares or uses, and where each is declared. */
  readonly layouts: Map<string, Layout>
  /** Exported constants of the standard library, as `placeOfConstant` names them. */
  readonly reexported: string[]
  /** Ops that functions return, which are declared where it calls them. */
  readonly returned: Set<string>
  /** Those of them that are written here, in a function that others call. */
  readonly uncalled: string[]
}

/** A kernel of the standard library, by the constant that is its op. */
export interface StandardRead {
  readonly constant: string | undefined
  readonly kernel: Kernel
}

/** What modules declare together. */
export function assemble(files: ReadonlyMap<string, FileRead>, standard: readonly StandardRead[]): Declared {
  const reads = [...files.values()]
  const reexported = new Set(reads.flatMap((read) => read.reexported))
  const isOwn = ({ constant }: StandardRead): boolean => constant !== undefined && reexported.has(constant)
  const kernels = [...standard.filter(isOwn).map(({ kernel }) => kernel), ...reads.flatMap((read) => read.kernels)]
  const layouts = new Map(reads.flatMap((read) => [...read.layouts]))
  return {
    kernels: kernels.sort(byName),
    standard: standard.filter((each) => !isOwn(each)).map(({ kernel }) => kernel),
    layouts: [...layouts.values()].sort(byName),
  }
}

/** Ops of some names, and all layouts. */
export const partOf = ({ kernels, layouts }: Declared, only: ReadonlySet<string>): Declared => ({
  kernels: kernels.filter(({ name }) => only.has(name)),
  standard: [],
  layouts,
})

const byName = (a: { readonly name: string }, b: { readonly name: string }): number => (a.name < b.name ? -1 : 1)
