/** Storage types a model can run in: a list by itself, which the options of verbs name without loading what reads checkpoints. */
export const floatTypes = ['f32', 'f16', 'bf16'] as const

export type FloatType = (typeof floatTypes)[number]
