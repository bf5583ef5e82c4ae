# Ordered probit: MASS's polr, ordinal's clm, VGAM's cumulative family.

here <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])
source(file.path(dirname(gsub("~+~", " ", here, fixed = TRUE)), "harness.R"))

by_polr <- function(y, X) {
  fit <- MASS::polr(y ~ X, method = "probit", Hess = TRUE)
  list(c(coef(fit), fit$zeta), sqrt(diag(vcov(fit))))
}

by_clm <- function(y, X) {
  fit <- ordinal::clm(y ~ X, link = "probit")
  at <- c(names(fit$beta), names(fit$alpha))
  list(coef(fit)[at], sqrt(diag(vcov(fit)))[at])
}

by_vglm <- function(y, X) {
  family <- VGAM::cumulative(link = "probitlink", parallel = TRUE, reverse = FALSE)
  fit <- VGAM::vglm(y ~ X, family)
  cuts <- seq_len(nlevels(y) - 1)
  all <- VGAM::coef(fit)
  error <- sqrt(diag(VGAM::vcov(fit)))
  list(c(-all[-cuts], all[cuts]), c(error[-cuts], error[cuts]))
}

estimate <- function(table, options) {
  y <- factor(table$read("values")[, 1], ordered = TRUE)
  found <- list(polr = by_polr, clm = by_clm, vglm = by_vglm)[[options$method]](y, table$read("regressors"))
  list(
    mean = found[[1]], covariance = matrix(1, 1, 1),
    mean_interval = wald(found[[1]], found[[2]], table$task$level)
  )
}

method <- fromJSON(commandArgs(trailingOnly = TRUE)[3])$method
answer_all(estimate, c(polr = "MASS", clm = "ordinal", vglm = "VGAM")[[method]])
