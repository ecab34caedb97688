/** Shipped layouts and conversions, which models may need besides their own declarations: shipped plans store values in these layouts. */
export { conversions } from '../../../specs/conversions.js'
export { layouts } from '../../../specs/layouts.js'
