/**
 * Every error code with its meaning, usual cause and repair, as shown by `heddle explain` and the page of codes. `ErrorCode` is derived from this
 * record, so a code without a text does not compile. A test finds texts of codes that are never thrown.
 */
import { callCodes } from './calls.js'
import { modelCodes } from './models.js'
import { specCodes } from './specs.js'
import { toolCodes } from './tools.js'

export const codeTexts: typeof specCodes & typeof callCodes & typeof modelCodes & typeof toolCodes = {
  ...specCodes,
  ...callCodes,
  ...modelCodes,
  ...toolCodes,
}
