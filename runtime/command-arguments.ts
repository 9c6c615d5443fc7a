import { type ParseArgsConfig, parseArgs } from "node:util";

type Options = NonNullable<ParseArgsConfig["options"]>;
type Values<O extends Options> = ReturnType<typeof parseArgs<{ options: O }>>["values"];

/** The values of a command's options, and the function that ends the command because of a wrong value. */
export type CommandArguments<O extends Options> = { values: Values<O>; refuse: (message: string) => never };

/**
 * Reads the arguments of a command, which may have these options and `--help`. With `--help` it prints the help and exits with 0.
 * For an argument that the command does not have, and for one that the command refuses, it prints the reason and the help to
 * stderr and exits with 2.
 */
export function readArguments<const O extends Options>(help: string, options: O): CommandArguments<O> {
  const refuse = (message: string): never => {
    console.error(`${message}\n\n${help}`);
    process.exit(2);
  };
  try {
    const withHelp: Options = { ...options, help: { type: "boolean" } };
    const { values } = parseArgs({ options: withHelp });
    if (values["help"] === true) {
      console.log(help);
      process.exit(0);
    }
    return { values: values as Values<O>, refuse };
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
}
