/** Refusals of names: what there is, and which of it was probably meant. */
export { listed, nameHint } from '../../known_names.js'
