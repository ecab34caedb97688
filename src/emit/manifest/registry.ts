/** The registry of a kernel library: the table by which the addon finds launchers. */

import { render } from '../templates.js'
import type { KernelEntry } from './manifest.js'

/** C++ source for kernels in the order of their keys. */
export const registryText = (entries: readonly KernelEntry[]): string =>
  render('registry', {
    kernels: entries.map(({ key, digest, buffers, dims, attrs }) => ({
      key,
      digest,
      buffers: buffers.length,
      dims: dims.length,
      attrs: attrs.length,
      access: buffers.map(({ access }) => (access === 'in' ? 'r' : 'w')).join(''),
    })),
  })
