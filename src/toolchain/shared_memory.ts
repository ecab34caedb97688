/**
 * Limit on static shared memory, checked against the report of ptxas after a build. ptxas refuses more for most architectures, but not for
 * sm_90a, where the kernel fails at its first launch.
 */
import { findingError } from '../errors.js'
import type { KernelResources } from './ptxas.js'

/** Bytes of static shared memory that every architecture grants a block. */
const mostStatic = 48 * 1024

/** @throws finding `build.shared` for kernels that declare more static shared memory than a block is granted */
export function refuseShared(
  objects: readonly { readonly source: string; readonly resources: readonly KernelResources[] }[],
): void {
  const large = objects.flatMap(({ source, resources }) =>
    resources
      .filter(({ sharedBytes }) => sharedBytes > mostStatic)
      .map(
        ({ kernel, arch, sharedBytes }) =>
          `${kernel} (${source}) on ${arch}: expected at most ${mostStatic} bytes of static shared memory, got ${sharedBytes}`,
      ),
  )
  if (large.length === 0) return
  throw findingError('build.shared', large.join('\n'), {
    hint: 'give the kernel smaller arrays in shared memory: shorter rows that are kept, or fewer reductions by monoids in one op',
  })
}
