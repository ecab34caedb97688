/** Conversion between row-major host tensors and the bytes of a form on the device. */
import type { DType } from '../../ir/dtype.js'
import { dtypeInfo } from '../../ir/dtype.js'
import type { LayoutDecl } from '../../lang/layout.js'
import { findLayout, type Layouts } from '../layouts.js'
import type { Form } from './device_tensor.js'
import { elementsIn, inLayout, inRows } from './order.js'
import { bytesOf, type Tensor, tensorOf } from './tensor.js'

/** Bytes of device memory of a tensor, padding of its layout included. */
export const formBytes = ({ dtype, shape, layout }: Form): number => elementsIn(layout, shape) * dtypeInfo[dtype].bytes

/** Bytes of a host tensor in the order of a layout; the tensor's own bytes if that is row-major. */
export const bytesIn = ({ data, shape }: Tensor<DType>, layout: LayoutDecl | undefined): Uint8Array =>
  bytesOf(layout === undefined ? data : inLayout(data, layout, shape))

/** Row-major host tensor of bytes in the given form. */
export function tensorIn({ dtype, shape, layout }: Form, bytes: Uint8Array): Tensor<DType> {
  if (layout === undefined) return tensorOf(dtype, shape, bytes)
  const { data } = tensorOf(dtype, [elementsIn(layout, shape)], bytes)
  return tensorOf(dtype, shape, bytesOf(inRows(data, layout, shape)))
}

/** Finds a layout by name; undefined for row-major. @throws usage `layout.unknown`, `layout.rank` */
export const layoutOf = (layouts: Layouts, name: string, rank: number): LayoutDecl | undefined =>
  name === 'row' ? undefined : findLayout(layouts, name, rank)
