/** Tensors between the host, row-major, and bytes as a form says that they lie on the device. */
import type { DType } from '../../ir/dtype.js'
import { dtypeInfo } from '../../ir/dtype.js'
import type { LayoutDecl } from '../../lang/layout.js'
import { findLayout, type Layouts } from '../layouts.js'
import type { Form } from './device_tensor.js'
import { elementsIn, inLayout, inRows } from './order.js'
import { bytesOf, type Tensor, tensorOf } from './tensor.js'

/** Device memory that a tensor takes, padding of its layout included. */
export const formBytes = ({ dtype, shape, layout }: Form): number => elementsIn(layout, shape) * dtypeInfo[dtype].bytes

/** The bytes of a host tensor in the order of a layout: the tensor's own where that is row-major. */
export const bytesIn = ({ data, shape }: Tensor<DType>, layout: LayoutDecl | undefined): Uint8Array =>
  bytesOf(layout === undefined ? data : inLayout(data, layout, shape))

/** The tensor of bytes that lie as the form says. */
export function tensorIn({ dtype, shape, layout }: Form, bytes: Uint8Array): Tensor<DType> {
  if (layout === undefined) return tensorOf(dtype, shape, bytes)
  const { data } = tensorOf(dtype, [elementsIn(layout, shape)], bytes)
  return tensorOf(dtype, shape, bytesOf(inRows(data, layout, shape)))
}

/** The layout of a name; undefined for row-major. @throws usage `layout.unknown`, `layout.rank` */
export const layoutOf = (layouts: Layouts, name: string, rank: number): LayoutDecl | undefined =>
  name === 'row' ? undefined : findLayout(layouts, name, rank)
