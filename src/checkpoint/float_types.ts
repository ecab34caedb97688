/** Storage types that a model can run in. A module of its own, so that command options can list them without loading the checkpoint readers. */
export const floatTypes = ['f32', 'f16', 'bf16'] as const

export type FloatType = (typeof floatTypes)[number]
