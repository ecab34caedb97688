/** Tensors and signatures that ops of this folder share. */
import { tensor } from 'heddle'

export const floats = { T: ['f32', 'f16', 'bf16'] } as const

export const matrix = tensor('T', 'm n')
export const heads = tensor('T', 'm g h')
export const matrices = tensor('T', 'b m n')
export const column = tensor('T', 'n')
export const rowValue = tensor('f32', 'm')
export const headValue = tensor('f32', 'g')
export const partValue = tensor('f32', 'm g')
export const partPlace = tensor('i32', 'm g')

export const ofMatrix = { dims: ['m', 'n'], types: floats, inputs: { x: matrix }, outputs: { y: matrix } } as const
export const ofHeads = { dims: ['m', 'g', 'h'], types: floats, inputs: { x: heads }, outputs: { y: heads } } as const
export const ofMatrices = { dims: ['b', 'm', 'n'], types: floats, inputs: { x: matrices, bias: tensor('T', 'b n') } } as const
/** Rows in `g` parts of 32 columns. */
export const ofParts = { dims: ['m', 'n', 'g'], types: floats, inputs: { x: matrix } } as const
