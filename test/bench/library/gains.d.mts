/** Types of the script: its results come from JSON. */
export function matmulTable(results: readonly object[]): string
export function planTable(results: readonly object[]): string
export function section(found: Readonly<Record<string, { readonly tune: object; readonly bench: object }>>): string
export function written(page: string, text: string): string
