/**
 * Check of constant inputs. A kernel treats inputs that are weights of its graph as constants: it reads them through the read-only path, and may do
 * so before earlier launches finish. A program in which a step writes such memory would break this, and is refused here. Programs of a device run one after the other, each awaited, so the steps of other programs do not
 * count. The addon finds the other inputs that a launch may prefetch in the same way.
 */
import type { Manifest } from '../emit/manifest/manifest.js'
import { usageError } from '../errors.js'
import type { NativeSlice } from './native.js'
import type { StorageId } from './program_memory.js'
import { overlap } from './program_states.js'
import type { FlatStep } from './program_steps.js'

/** Checks that no step writes a constant. @throws usage `program.constant` naming the step that reads it, the tensor, and a step that writes it */
export function checkConstants(steps: readonly FlatStep[], manifest: Manifest, slice: (id: StorageId) => NativeSlice): void {
  const entries = new Map(manifest.kernels.map((entry) => [entry.key, entry]))
  const buffersOf = (step: FlatStep & { readonly kind: 'kernel' }) =>
    (entries.get(step.key)?.buffers ?? []).map((buffer, i) => ({ buffer, slice: slice(step.buffers[i] ?? -1) }))
  const written = steps.flatMap((step) => {
    const slices =
      step.kind === 'kernel'
        ? buffersOf(step).flatMap((each) => (each.buffer.access === 'out' ? [each.slice] : []))
        : [slice(step.kind === 'copy' ? step.to : step.out)]
    return slices.map((each) => ({ label: step.label, slice: each }))
  })
  for (const step of steps) {
    if (step.kind !== 'kernel') continue
    for (const { buffer, slice: read } of buffersOf(step)) {
      const writer = buffer.constant === true ? written.find((other) => overlap(other.slice, read)) : undefined
      if (writer === undefined) continue
      throw usageError(
        'program.constant',
        `${step.label}: ${step.key} reads ${buffer.name} as a constant, and ${writer.label} writes its memory`,
        { hint: `declare ${buffer.name} as an input of the graph instead of a weight: the plan's kernel then reads it as one` },
      )
    }
  }
}
