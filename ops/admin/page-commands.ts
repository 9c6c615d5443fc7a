import { type Command, InvalidArgumentError } from "commander";
import { findAnyPayment } from "../../payments/lifecycle/checkout-view.ts";
import { checkReleasedPages, type PageCheckResult } from "../../runtime/released-pages/check-released-pages.ts";
import { createSafeFetch } from "../../runtime/safe-fetch.ts";
import { type AddAction, UsageError } from "./command.ts";

/** Adds the command that checks the buyers' pages of a deployment. */
export function addPageCommands(program: Command, addAction: AddAction): void {
  const pages = program.command("pages").description("the buyers' pages as a deployment serves them");
  addAction(
    pages
      .command("check")
      .description("compare headers, scripts and their hashes with this release")
      .option("--url <url>", "address at which buyers reach the deployment (default: PUBLIC_URL)", httpUrl)
      .option("--payment <id>", "a payment of the deployment (default: any payment of the database)")
      .addHelpText(
        "after",
        "\nExits with 0 when both pages match this release, and with 1 when one differs or cannot be checked." +
          "\n\nExample:\n  npm run admin -- pages check --url https://pay.example.com",
      ),
    async (context, _args, { url, payment }) => {
      const publicUrl = url ?? context.publicUrl;
      if (publicUrl === undefined) throw new UsageError("--url is missing, and PUBLIC_URL is not set");
      // The operator chooses the address, so a private one is allowed.
      const deps = { ask: createSafeFetch({ allowPrivate: true }) };
      const checks = await checkReleasedPages(deps, {
        publicUrl,
        paymentId: payment ?? (await findAnyPayment(context)),
      });
      const isAsReleased = checks.every((check) => "differences" in check && check.differences.length === 0);
      return {
        value: checks,
        lines: checks.flatMap(describeCheck),
        ...(isAsReleased
          ? {}
          : { refusal: `the pages of ${publicUrl} do not match this release or could not be checked` }),
      };
    },
  );
}

function describeCheck(check: PageCheckResult): string[] {
  if ("notChecked" in check) return [`${check.page}: not checked: ${check.notChecked}`];
  if (check.differences.length === 0) return [`${check.page}: as released`];
  return [`${check.page}: differs`, ...check.differences.map((difference) => `  ${difference}`)];
}

function httpUrl(text: string): string {
  if (!/^https?:$/.test(URL.parse(text)?.protocol ?? ""))
    throw new InvalidArgumentError("expected an http or https URL");
  return text;
}
