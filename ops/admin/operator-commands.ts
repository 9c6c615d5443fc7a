import type { Command } from "commander";
import {
  changeRole,
  createOperator,
  disableOperator,
  listOperators,
  operatorRoles,
  resetCredentials,
} from "../../payments/operators/operators.ts";
import { type AddAction, oneOf, unwrap } from "./command.ts";

const parseRole = oneOf(...operatorRoles);

/** Adds the commands for operators: who may log in to bull-board and act on the command line, and in which role. */
export function addOperatorCommands(program: Command, addAction: AddAction): void {
  const operators = program.command("operators").description("people who operate the service, by name and role");
  addAction(
    operators
      .command("new <name>")
      .description("create an operator; the password and the TOTP secret are shown only once")
      .requiredOption("--role <role>", "viewer, operator or approver", parseRole)
      .addHelpText(
        "after",
        "\nA viewer reads, an operator also changes, an approver also approves and manages operators. The first operator must\n" +
          "be an approver. As soon as there is an operator, OPERATOR must name one for every command that changes something.",
      ),
    async (context, [name = ""], { role }) => {
      const deps = { ...context, encryptTotpSecret: context.encryptTo("totp").encrypt };
      const actor = await context.actor("approver");
      return { value: unwrap(await createOperator(deps, { actor, name, role: parseRole(role) })) };
    },
  );
  addAction(operators.command("list").description("list all operators"), async (context) => ({
    value: await listOperators(context),
  }));
  addAction(
    operators
      .command("role <name>")
      .argument("<role>", "viewer, operator or approver", parseRole)
      .description("change the role of an operator, who has to log in again"),
    async (context, [name = "", role]) => {
      const actor = await context.actor("approver");
      return { value: unwrap(await changeRole(context, { actor, name, role: parseRole(role) })) };
    },
  );
  addAction(
    operators
      .command("reset-totp <name>")
      .description("give an operator a new password and TOTP secret, which are shown only once"),
    async (context, [name = ""]) => {
      const deps = { ...context, encryptTotpSecret: context.encryptTo("totp").encrypt };
      return { value: unwrap(await resetCredentials(deps, { actor: await context.actor("approver"), name })) };
    },
  );
  addAction(
    operators.command("disable <name>").description("disable an operator for ever, and end their sessions"),
    async (context, [name = ""]) => ({
      value: unwrap(await disableOperator(context, { actor: await context.actor("approver"), name })),
    }),
  );
}
