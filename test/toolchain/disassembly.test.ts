/** Output of nvdisasm and cuobjdump is read as instructions with their source lines; missing tools are reported. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { disassemble, readDisassembly } from '../../src/toolchain/disassembly.js'
import { projectWithNvcc } from './fake_nvcc.js'

/** Output of nvdisasm 13.0 with `--print-line-info-inline --print-code`. */
const nvdisasm = `	.headerflags	@"EF_CUDA_SM90"
	.align	128
.text._Zaveryreread:
        .type           _Zaveryreread,@function
	//## File "/p/generated/cuda/layer_norm__f16.cu", line 99
        /*0000*/                   LDC R1, c[0x0][0x28] ;
	//## File "/p/native/device/cuda.cuh", line 162 inlined at "/p/native/device/cuda.cuh", line 176
	//## File "/p/native/device/cuda.cuh", line 176 inlined at "/p/generated/cuda/layer_norm__f16.cu", line 107
	//## File "/p/generated/cuda/layer_norm__f16.cu", line 107
        /*0010*/                   ACQBULK ;
        /*0070*/               @P0 EXIT ;
.L_x_0:
	//## File "/p/native/device/cuda.cuh", line 74
        /*0080*/               @P1 BRA \`(.L_x_0) ;
.text._Zkept:
        /*0000*/                   EXIT ;
`
const cuobjdump = `	code for sm_90a
		Function : _Zaveryreread
	.headerflags	@"EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                  /* 0x00000a00ff017b82 */
                                                                           /* 0x000fe20000000800 */
        /*0010*/                   EXIT ;                                  /* 0x000000000000794d */
`

describe('printed machine code', () => {
  it('of nvdisasm has the source lines, also through inlined functions', () => {
    expect(readDisassembly(nvdisasm, '/elsewhere/layer_norm__f16.cu')).toEqual([
      {
        kernel: '_Zaveryreread',
        text: '    LDC R1, c[0x0][0x28] ;\n    ACQBULK ;\n    @P0 EXIT ;\n.L_x_0:\n    @P1 BRA `(.L_x_0) ;',
        lines: [[99], [107], [107], [], []],
      },
      { kernel: '_Zkept', text: '    EXIT ;', lines: [[]] },
    ])
  })
  it('of cuobjdump has none, and no encodings', () => {
    expect(readDisassembly(cuobjdump, 'layer_norm__f16.cu')).toEqual([
      { kernel: '_Zaveryreread', text: '    LDC R1, c[0x0][0x28] ;\n    EXIT ;', lines: [[], []] },
    ])
  })
})

describe('a machine', () => {
  let root = ''
  afterEach(async () => {
    vi.unstubAllEnvs()
    await rm(root, { recursive: true, force: true })
  })
  const source = (generated: string, name: string) => ({ source: `cuda/${name}.cu`, path: join(generated, 'cuda', `${name}.cu`) })
  const signal = new AbortController().signal

  it('with both tools shows their output, and the reason of a failure', async () => {
    const { project, generated } = await projectWithNvcc({ a__f16: 'int a__f16;\n', b__f16: 'WRONG\n' })
    root = project.root
    const printed = nvdisasm.replaceAll('layer_norm__f16', 'a__f16')
    const tool = (does: string): string => `[ "$1" = --version ] && { echo "fake nvdisasm, release 2"; exit 0; }\n${does}`
    await project.script('nvdisasm', tool(`cat <<'END'\n${printed}END`))
    vi.stubEnv('PATH', `${root}:${process.env.PATH}`)
    expect(await disassemble(source(generated, 'a__f16'), signal)).toMatchObject({
      from: 'nvdisasm, fake nvdisasm, release 2, sm_90',
      kernels: [{ kernel: '_Zaveryreread', lines: [[99], [107], [107], [], []] }, {}],
    })
    expect(await disassemble(source(generated, 'b__f16'), signal)).toEqual({ missing: 'nvcc refuses b__f16.cu' })
    await project.script('nvdisasm', tool('echo "nvdisasm fatal : no such ABI" >&2; exit 1'))
    expect(await disassemble(source(generated, 'a__f16'), signal)).toEqual({ missing: expect.stringContaining('no such ABI') })
  })
  it('without one of them names it', async () => {
    const { project, generated } = await projectWithNvcc({ a__f16: 'int a__f16;\n' })
    root = project.root
    vi.stubEnv('HEDDLE_NVCC', join(root, 'none'))
    expect(await disassemble(source(generated, 'a__f16'), signal)).toEqual({ missing: 'there is no nvcc on this machine' })
  })
})
