/** Error codes of calls, runs and devices: arguments of kernels, graphs and programs, and their devices. */
import { texts } from './text.js'

export const callCodes = texts({
  'addon.load':
    'The native addon cannot be loaded. | It was built for another Node or C library, or is damaged. | Build it again with heddle build, or install the package again.',
  'addon.missing':
    'The native addon is not built. | Nothing has been built yet, or the folder of HEDDLE_NATIVE has none. | Run heddle build, with a C++ compiler and CMake installed.',
  'addon.version':
    'The native addon is of another version of heddle. | HEDDLE_NATIVE names an older build, or a copy was kept after an update. | Build it again with heddle build.',
  'bind.attr':
    'A kernel of a graph has an attribute without a finite value. | The attribute was not given, or computed as NaN. | Give a finite number for it.',
  'bind.buffer':
    'A kernel needs a buffer that its node does not have. | The generated text is of another state of the specs. | Run heddle gen again.',
  'bind.dim':
    'A dimension of a kernel has no size or two sizes. | The tensors given disagree, or no tensor has the dimension. | Give tensors whose shapes agree.',
  'bind.extent':
    'A dimension has a size that the kernel was not compiled for, or that facts of its op exclude. | A fixed size, such as that of a head, is another one here, or it is no multiple of what the op states. | Take a size that the message lists, or pad to it.',
  'bind.kernel':
    'A step of a graph has no kernel. | It was not generated for this storage type. | Run heddle gen, or use a type that the ops declare.',
  'buffer.bytes':
    'Bytes are no whole number of elements. | The data was cut off, or is of another storage type. | Give data of the declared type, as a whole.',
  'buffer.values':
    'Values are in another kind of array than the storage type has. | A plain or a wrong typed array is given where elements are encoded. | Use the typed array that the message names.',
  'call.alias':
    'One device tensor is given for two inputs, one of which is updated in place. | The same tensor stands under two names. | Upload it twice.',
  'call.attrs':
    'An attribute of a call is unknown or is no number that it can be. | A misspelt name, NaN, or a fraction for an attribute that is an integer. | Give finite numbers for attributes that the op declares.',
  'call.data':
    'The data of a tensor given to a call do not go with its type or shape. | Another kind of array, or another number of elements. | Make it with tensor(dtype, shape, values), which converts numbers.',
  'call.dims':
    'A dimension of a call is unknown, missing or no size. | No input has it and no fact of the op tells it, so that its size cannot be known. | Pass it: call(op, inputs, { dims: { k: 4 } }).',
  'call.dtype':
    'A tensor has another storage type than the op can take. | Two inputs of one type parameter differ, or nothing says the type of an output. | Convert with tensor(dtype, shape, toNumbers(t)), or pass { dtype }.',
  'call.extent':
    'A dimension has two sizes, or one that no kernel is compiled for. | The shapes of two inputs disagree, or a size is not what facts of the op say. | Correct the shapes, or pad to a size that the hint names.',
  'call.input':
    'An input of a call is missing, unknown, or not given in an object. | A misspelt key, or positional arguments. | Write call(op, { x, gamma }) with every input by its name.',
  'call.kernel':
    'No kernel was generated for this call. | The op does not declare the storage type, or generated/ is older than the op. | Declare the type, and run heddle gen.',
  'call.layout':
    'A device tensor lies in another layout than the op reads. | It is the output of an op that stores it otherwise. | Read it and give the host tensor, which is put in order on the way.',
  'call.op':
    'The first argument of call is no op, or states a type that it cannot have. | The function of a module or its name is given instead of what op(...) returns. | Import the constant that op(...) returned.',
  'call.option':
    'A call has an option that there is not, or one of the wrong kind. | The option is misspelt, so that nothing would read it. | Write one that the hint lists.',
  'call.rank':
    'A tensor has another number of dimensions than the op declares. | A leading or trailing dimension of 1 is missing or too many. | Give the same data with the shape that the message names.',
  'call.shape':
    'The shape of a tensor given to a call is no list of sizes. | An extent is missing, negative or a fraction. | Give whole numbers from 0.',
  'call.stale':
    'The generated kernel is of another declaration of the op. | The op was edited after heddle gen, or another op has its name. | Run heddle gen; kernels are compiled when they are called. Give one of two ops of a name another.',
  'call.tensor':
    'What is given as an input is no tensor. | An array or a number stands where a tensor is expected. | Make it with tensor(dtype, shape, data).',
  'call.value':
    'An element cannot be what the kernel computes with. | An integer beyond int32, where kernels index and count in 32 bits. | Keep integers between -2^31 and 2^31 - 1.',
  'device.aborted': 'A run was cancelled. | Its AbortSignal fired. | Start it again if that was not meant.',
  'device.closed':
    'A device is used after it was closed. | close() was called, or the scope that closes it ended. | Open another with openDevice.',
  'device.error':
    'The driver reported an error. | A fault of an earlier kernel, a lost GPU, or a driver that does not fit. | Run it on simt, which names the kernel; then see nvidia-smi and heddle doctor.',
  'device.fault':
    'A kernel did something that is not allowed. | It read or wrote out of bounds, a barrier was not reached by all threads, or threads raced. | The message names kernel and tensor: check ids and offsets given, then heddle check and heddle repro.',
  'device.int8':
    'The GPU has no int8 products of the kind that the plan uses. | Its compute capability is older than the message says. | Choose a plan of floats.',
  'device.invalid':
    'A device is asked for something with arguments it cannot take. | Sizes, offsets or buffers that do not fit; often a tensor of another device. | Correct what the message names.',
  'device.kind':
    'There is no device of that name. | Only simt and cuda are devices, and cuda:1 is the second GPU. | Write one of these, or leave it out.',
  'device.memory':
    'The device is out of memory. | The batch, the caches or the weights take more than is free. | Use a smaller batch, shorter sequences, int8 weights, or close other programs.',
  'device.option':
    'openDevice has no such option, or its value is of the wrong kind. | The option is misspelt, so that nothing would read it. | Write one that the hint lists.',
  'device.plugin':
    'The plugin of a device is not built. | Only the other device was built so far. | Run heddle build --target with the device.',
  'device.root': 'The folder of the project is not there. | root names no folder. | Pass an existing folder to openDevice.',
  'device.unavailable':
    'The machine has no such device. | No GPU, fewer GPUs than the number asked for, no driver, or a driver older than the CUDA that heddle was built with. | See heddle doctor, or use simt.',
  'library.kernel':
    'A kernel library does not have a kernel that is asked for. | The text was not generated, or the library was built before it. | Run heddle gen, then heddle build.',
  'library.missing':
    'There is no kernel library for the device. | Nothing was built ahead, and this installation does not compile. | Run heddle build --target with the device.',
  'library.stale':
    'A kernel in the library is not what the manifest describes. | Text or manifest changed after the build. | Run heddle gen, then heddle clean, and build again.',
  'load.attrs':
    'Attributes given to load are unknown or no numbers. | A misspelt name, or a value that is not finite. | Give finite numbers under names that the graph declares.',
  'load.config':
    'A configuration is given to what takes none, or is no object. | Only programs that are made by a function have a configuration. | Leave it out, or pass an object with the fields of the program.',
  'load.conversions':
    'The option conversions is no list of conversions. | A single one, or another form. | Give a list of { op, scales }.',
  'load.data':
    'The data of a weight do not go with its type or shape. | Another kind of array, or another number of elements. | Make it with tensor(dtype, shape, values), which converts numbers.',
  'load.dims':
    'A dimension is known by no weight, or is no size. | A misspelt name, or a size that a weight says otherwise. | Give whole numbers for dimensions that the hint lists.',
  'load.dtype':
    'The storage type that a graph is loaded in does not fit. | Its ops do not declare it, weights have several types, or it is no type at all. | Pass { dtype } with a type that the message lists, or convert the weights.',
  'load.extent':
    'A dimension of weights has two sizes, or one that is not possible. | Two weights disagree, or belong to another configuration. | Give weights of one model.',
  'load.graph':
    'The first argument of load is no graph or program. | A plan, an op or a module is given. | Pass what graph(...) or program(...) returned.',
  'load.layout':
    'A weight is needed in a layout that its tensor cannot be brought to. | A plan asks for a layout of another rank, or one that is not declared. | Use another plan, or declare the layout and pass it in the option.',
  'load.layouts':
    'The option layouts holds something that is no layout. | A name stands where the declaration is expected. | Pass what layout(...) returned.',
  'load.option':
    'load has no such option. | The option is misspelt, so that nothing would read it. | Write one that the hint lists.',
  'load.plan':
    'The plan given to load is none of the graph. | A misspelt name, or a plan of another graph. | Choose one that the message lists.',
  'load.rank':
    'A weight has another number of dimensions than the graph declares. | A leading or trailing dimension of 1 is missing or too many. | Give the data with the shape that the message names.',
  'load.scales':
    'A scale that a plan needs is missing or no scale. | The plan quantises values that were not calibrated. | Pass a positive number for each scale that the message names.',
  'load.shape':
    'The shape of a weight is no list of sizes. | An extent is missing, negative or a fraction. | Give whole numbers from 0.',
  'load.stale':
    'The plan was applied to another state of the graph. | The graph was edited after heddle gen. | Run heddle gen again.',
  'load.states':
    'What is said of states does not fit the program. | A state without an input or output of its name, or without a value to begin with. | Name an input and an output of the graph, and give the first value.',
  'load.tensor':
    'What is given as a weight is no tensor. | An array or a number stands where a tensor is expected. | Make it with tensor(dtype, shape, data).',
  'load.value':
    'An element of a weight cannot be what kernels compute with. | An integer beyond int32. | Keep integers between -2^31 and 2^31 - 1.',
  'load.weight':
    'A weight is missing or does not fit. | Its name, shape or storage type is not what the graph declares. | Give every weight of the graph with its declared shape.',
  'load.weights':
    'The option weights is no record of tensors. | A list, or a single tensor. | Write { weights: { name: tensor } }.',
  'manifest.invalid':
    'The manifest of generated kernels is not as expected. | It was edited, merged by hand, or written by another version. | Run heddle gen again.',
  'manifest.missing':
    'The manifest of generated kernels cannot be read. | Nothing was generated yet, or the folder was removed. | Run heddle gen.',
  'model.closed':
    'A model is used after it was closed. | close() was called, or the scope that closes it ended. | Load it again.',
  'run.argument':
    'A body calls a function of rows without a length or without elements. | An argument is left out, or is a row that was never made. | Write sum(n, (c) => x(m, c)).',
  'run.data':
    'The data of a tensor given to a run do not go with its type or shape. | Another kind of array, or another number of elements. | Make it with tensor(dtype, shape, values), which converts numbers.',
  'run.dim': 'A dimension of a run has no size. | No tensor of the inputs has it. | Pass it in dims.',
  'run.dims':
    'A dimension of a run has no size, or two. | Inputs tell a product of it alone, or a tensor says otherwise. | Give dimensions that no input tells where the model is loaded.',
  'run.dtype':
    'A tensor of a run has another storage type than the graph declares. | Data of another type was loaded. | Convert with tensor(dtype, shape, toNumbers(t)).',
  'run.extent':
    'A dimension of a run has a size that its kernels are not compiled for. | A fixed size is another one here. | Take a size that the message names, or pad to it.',
  'run.input':
    'An input of a run is missing, unknown, or not given in an object. | A misspelt key, or no text and no cases on the command line. | Give every input by its name, or --text or --cases.',
  'run.layout':
    'A device tensor of a run lies in another layout. | It is the output of something that stores it otherwise. | Read it, and give the host tensor.',
  'run.lengths':
    'Lengths of sequences do not fit the tensors they are of. | A length beyond the sequence, or sequences that do not fit the packed rows. | Give lengths from 0 to the extent of the sequence.',
  'run.output':
    'A body run by Node returns no such output. | The object that it returns lacks the key. | Return every declared output.',
  'run.rank':
    'A tensor of a run has another number of dimensions than is declared. | A leading or trailing dimension of 1 is missing or too many. | Give the data with the shape that the message names.',
  'run.shape':
    'A tensor of a run has a shape that does not fit. | Its data has another number of elements, or a dimension differs from another tensor. | Correct the shape as the message says.',
  'run.state':
    'A state is given a tensor of another shape or type. | The tensor was made for other sizes. | Give one like the state.',
  'run.tensor':
    'What is given as an input of a run is no tensor. | An array or a number stands where a tensor is expected. | Make it with tensor(dtype, shape, data).',
  'states.memory':
    'States of a program do not fit into the memory of the device. | Caches for this batch, number of beams and length take more than is free. | Use a smaller batch, fewer beams or fewer steps.',
  'states.name': 'A program has no state of that name. | It is misspelt. | Write one that the hint lists.',
  'states.values':
    'Values given for a state have another size. | They are of another batch or length. | Give as many bytes as the message says.',
  'tensor.config':
    'A tensor or state is declared by something else than it takes. | An argument was left out or misspelt in JavaScript. | Give a storage type and dimensions as strings.',
  'tensor.data':
    'The values of a tensor are no array of numbers that it can hold. | Nested arrays, texts, or a BigInt64Array for another type. | Give one flat array of numbers.',
  'tensor.device': 'A tensor lies on another device than the call. | Two devices are open. | Read it there, and upload it here.',
  'tensor.dtype':
    'A tensor is asked for in a storage type that does not exist. | Names of other tools, such as float32. | Write one of the storage types that the message lists.',
  'tensor.freed':
    'A device tensor is used after it was freed. | free() was called, or its device was closed. | Keep it until its last use, or upload it again.',
  'tensor.layout':
    'A layout does not fit the shape of a tensor. | The layout has another number of axes. | Use a layout of the same rank.',
  'tensor.option':
    'A tensor has no such option. | The option is misspelt, so that nothing would read it. | Write one that the hint lists.',
  'tensor.shape':
    'The shape of a tensor is no list of sizes, or not that of its data. | Its product is not the number of values. | Give whole numbers from 0 whose product is the number of values.',
  'tensor.tensor':
    'What is given is no tensor. | An array or a number stands where a tensor is expected. | Make it with tensor(dtype, shape, data).',
  'tensor.value':
    'A value cannot be stored in the type of the tensor. | It is a fraction or beyond the range of an integer type. | Round and clamp first, or use a float type.',
  'verify.fact':
    'A kernel reads integers, and nothing says which are allowed. | Data to check it on cannot be drawn without the range. | State it on the op: facts: { ids: { index: "n" } }.',
  'verify.oracle':
    'Nothing tells what a kernel should compute. | Its op is not among the specs, and its IR is not at hand. | Check it in the project that declares the op.',
})
