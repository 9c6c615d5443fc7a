import { type Command, InvalidArgumentError } from "commander";
import { lookAtPages, type PageLook } from "../../api/checkout/probe.ts";
import { findAnyPayment } from "../../payments/checkout.ts";
import { createOutward } from "../outward.ts";
import { type Runs, UsageError } from "./tool.ts";

/** The buyers' pages as a deployment serves them. */
export function addPageCommands(program: Command, runs: Runs): void {
  const pages = program.command("pages").description("the buyers' pages as they are served");
  runs(
    pages
      .command("check")
      .description("compare headers, scripts and their hashes with this release")
      .option("--url <url>", "of this deployment, as buyers have it (PUBLIC_URL when unset)", httpUrl)
      .option("--payment <id>", "a payment that it knows (any of the database's when unset)")
      .addHelpText(
        "after",
        "\nEnds with 0 when both pages are as this release has them, 1 when one is not or could not be looked at." +
          "\n\nExample:\n  npm run admin -- pages check --url https://pay.example.com",
      ),
    async (tool, _args, { url, payment }) => {
      const publicUrl = url ?? tool.publicUrl;
      if (publicUrl === undefined) throw new UsageError("--url is missing, and PUBLIC_URL is not set");
      // A private network is fine: the operator says where.
      const deps = { ask: createOutward({ allowPrivate: true }) };
      const looks = await lookAtPages(deps, { publicUrl, paymentId: payment ?? (await findAnyPayment(tool)) });
      const isAsReleased = looks.every((look) => "differences" in look && look.differences.length === 0);
      return {
        value: looks,
        lines: looks.flatMap(describeLook),
        ...(isAsReleased ? {} : { refusal: `what ${publicUrl} serves could not be shown to be this release` }),
      };
    },
  );
}

function describeLook(look: PageLook): string[] {
  if ("notLooked" in look) return [`${look.page}: could not be looked at: ${look.notLooked}`];
  if (look.differences.length === 0) return [`${look.page}: as released`];
  return [`${look.page}: differs`, ...look.differences.map((difference) => `  ${difference}`)];
}

function httpUrl(text: string): string {
  if (!/^https?:$/.test(URL.parse(text)?.protocol ?? ""))
    throw new InvalidArgumentError("expected an http or https URL");
  return text;
}
