//! Cron jobs.

use crate::strategy::place::Place;
use crate::strategy::{PLAIN, Strategy, job, workload};
use object::cron::Schedule;
use object::field::Errors;
use object::{Edit, Value, View, time};

pub const STRATEGY: Strategy = Strategy {
    default: Some(default),
    prepare: Some(|new, _| workload::drop_disabled(new, &["spec", "jobTemplate", "spec", "template"])),
    validate: Some(validate),
    warn: Some(warn),
    generation: true,
    ..PLAIN
};

/// The name of a job is that of its cron job and eleven characters more.
const NAME_MAX: usize = 52;

fn default(object: &mut Value) {
    let Some(spec) = object.object("spec") else { return };
    if spec.text("concurrencyPolicy").is_empty() {
        spec.set("concurrencyPolicy", "Allow");
    }
    spec.set_default("suspend", false);
    spec.set_default("successfulJobsHistoryLimit", 3);
    spec.set_default("failedJobsHistoryLimit", 1);
    if let Some(job) = spec.object("jobTemplate").and_then(|template| template.object("spec")) {
        job::default_template(job);
    }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let object = Place::object(new);
    let (metadata, spec) = (object.field("metadata"), object.field("spec"));
    let old_spec = old.map(|old| old.at("spec"));
    validate_schedule(&spec, old_spec, errors);
    spec.field("startingDeadlineSeconds").not_negative(errors);
    let zone = spec.field("timeZone");
    if zone.is_set() && old_spec.is_none_or(|old| old.at("timeZone") != zone.value()) {
        validate_zone(&zone, errors);
    }
    spec.field("concurrencyPolicy").require_one_of(errors, &["Allow", "Forbid", "Replace"]);
    let template = spec.descend(&["jobTemplate", "spec"]);
    job::validate_spec(&template, errors);
    if template.field("selector").is_set() {
        template.field("selector").invalid(errors, "`selector` will be auto-generated");
    }
    let manual = template.field("manualSelector");
    if manual.value() == true {
        manual.not_supported(errors, &["nil", "false"]);
    }
    spec.field("successfulJobsHistoryLimit").not_negative(errors);
    spec.field("failedJobsHistoryLimit").not_negative(errors);
    if old.is_none() && metadata.field("name").text().len() > NAME_MAX {
        metadata.field("name").invalid(errors, format!("must be no more than {NAME_MAX} characters"));
    }
}

fn validate_schedule(spec: &Place, old: Option<&Value>, errors: &mut Errors) {
    let schedule = spec.field("schedule");
    if !schedule.require(errors) {
        return;
    }
    if let Err(error) = schedule.text().parse::<Schedule>() {
        schedule.invalid(errors, error.to_string());
    }
    // A schedule that named a zone before that was refused may go on doing so.
    let tolerated = old.is_some_and(|old| old.text("schedule").contains("TZ"));
    if !schedule.text().contains("TZ") {
        return;
    }
    if !tolerated {
        schedule.invalid(errors, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    } else if spec.field("timeZone").is_set() {
        schedule.invalid(errors, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
    }
}

fn validate_zone(zone: &Place, errors: &mut Errors) {
    let name = zone.text();
    if name.is_empty() {
        zone.invalid(errors, "timeZone must be nil or non-empty string");
    } else if name.eq_ignore_ascii_case("local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        zone.invalid(errors, detail);
    } else if !time::is_zone(name) {
        zone.invalid(errors, format!("unknown time zone {name}"));
    }
}

fn warn(new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    let object = Place::object(new);
    let spec = object.field("spec");
    if old.is_none() {
        warnings.extend(workload::name_warning(new));
    } else if spec.field("schedule").text().contains("TZ") {
        warnings.push(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                .to_owned(),
        );
    }
    let template = spec.field("jobTemplate");
    job::warn_spec(&template.field("spec"), &mut warnings);
    warnings
}
