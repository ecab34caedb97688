/**
 * Every error code with what it means, what usually causes it and what to do: what `heddle explain` and the page of codes say. `ErrorCode` is made of
 * this record, so that a code without a text does not compile; a test finds texts of codes that nothing throws.
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
